"""The host process: starting programs, telling about them, ending them."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.errors import (
    AgentNotFound,
    OutsideSessionResumed,
    StartFailed,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.ids import ConversationId, TerminalId
from sidestage.terminals.model import CreateTerminal, HostEventKind
from terminal_host.gateway.host_client import HostClient
from tests.e2e.terminal_host.waiting import has_ended, until, until_exited
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]

CONVERSATION = ConversationId("0b9b7e6c-6f0d-4c53-9f2e-5b1f8f6a7c11")
OTHER_CONVERSATION = ConversationId("1c9b7e6c-6f0d-4c53-9f2e-5b1f8f6a7c22")


async def test_ten_creates_with_one_id_start_one_program(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("cat")
    made = await asyncio.gather(*(host.create(request) for _ in range(10)))
    made.append(await host.create(request))
    assert len({terminal.pid for terminal in made}) == 1
    assert [t.terminal_id for t in await host.list_terminals()] == [request.terminal_id]


async def test_a_missing_program_is_a_typed_error_and_leaves_nothing(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = replace(new_terminal("no-such-program"), conversation_id=CONVERSATION)
    with pytest.raises(AgentNotFound):
        await host.create(request)
    assert await host.list_terminals() == ()
    # The lock on the conversation went with the failed start.
    await host.create(replace(new_terminal("cat"), conversation_id=CONVERSATION))


async def test_a_folder_that_is_gone_is_a_typed_error(
    host: HostClient, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    request = replace(new_terminal("cat"), directory=tmp_path / "gone")
    with pytest.raises(StartFailed):
        await host.create(request)
    assert await host.list_terminals() == ()


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
async def test_the_exit_status_is_the_code_or_128_and_the_signal(
    host: HostClient, new_terminal: NewTerminal, command: str, status: int
) -> None:
    request = new_terminal("sh", "-c", command)
    await host.create(request)
    assert (await until_exited(host, request.terminal_id)).exit_status == status


async def test_a_watch_begins_with_the_whole_list(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("cat")
    await host.create(request)
    async for event in host.watch():
        assert event.kind is HostEventKind.CONNECTED
        assert [t.terminal_id for t in event.terminals] == [request.terminal_id]
        break


async def test_the_program_gets_exactly_the_environment_it_was_given(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = replace(
        new_terminal("/usr/bin/env"),
        environment={"ONLY": "this \udcff", "PATH": "/bin"},
    )
    await host.create(request)
    await until_exited(host, request.terminal_id)
    lines = (await host.screen_text(request.terminal_id, lines=10)).split("\n")
    assert sorted(line.partition("=")[0] for line in lines if line) == ["ONLY", "PATH"]


async def test_a_program_ignores_and_blocks_no_signal(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    """Under nohup, shells inherited "ignore SIGHUP" and survived their terminal."""
    request = new_terminal("grep", "-E", "SigIgn|SigBlk", "/proc/self/status")
    await host.create(request)
    await until_exited(host, request.terminal_id)
    text = await host.screen_text(request.terminal_id, lines=5)
    masks = [int(line.split()[1], 16) for line in text.split("\n")]
    assert len(masks) == 2
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        assert not any(mask >> (number - 1) & 1 for mask in masks), number


async def test_title_and_bell_are_told(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("sh", "-c", r"printf '\033]2;a title\007\007'; cat")
    await host.create(request)
    seen = await until(host, request.terminal_id, lambda t: t.title is not None)
    assert seen.title == "a title"
    await until(host, request.terminal_id, lambda t: t.bell_at is not None)


async def test_the_bell_that_ends_a_title_is_no_bell(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("sh", "-c", r"printf '\033]2;a title\007'; exit 0")
    await host.create(request)
    assert (await until_exited(host, request.terminal_id)).bell_at is None


ASKS = r"""
import os, sys, tty
tty.setraw(0)
os.write(1, b"\x1b[c\x1b[5n\x1b[2;3H\x1b[6n\x1b[?2004$p\x1b]11;?\x1b\\\x1b[>q")
answers = b""
while not answers.endswith(b"(1)\x1b\\"):
    answers += os.read(0, 100)
print(answers.hex())
"""
ANSWERS = (
    b"\x1b[?1;2c\x1b[0n\x1b[2;3R\x1b[?2004;2$y"
    b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1bP>|sidestage(1)\x1b\\"
)


async def test_questions_are_answered_once_with_no_client_attached(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    """Claude Code waits at its start for DA1 and XTVERSION, client or no client."""
    request = new_terminal(sys.executable, "-c", ASKS, cols=200)
    await host.create(request)
    await until_exited(host, request.terminal_id)
    text = await host.screen_text(request.terminal_id, lines=24)
    assert text.replace("\n", "").strip() == ANSWERS.hex()


async def test_a_hundred_megabytes_without_a_client_do_not_block_the_program(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    script = "head -c 100000000 /dev/zero | tr '\\0' x | fold -w 79; echo; echo the end"
    request = new_terminal("sh", "-c", script)
    started = time.monotonic()
    await host.create(request)
    ended = await until_exited(host, request.terminal_id)
    assert ended.exit_status == 0
    assert time.monotonic() - started < 30
    assert (await host.screen_text(request.terminal_id, lines=1)).strip() == "the end"


async def test_resizing_reaches_the_program_and_the_list(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("sh", "-c", "trap 'stty size' WINCH; echo ready; sleep 60")
    await host.create(request)
    await host.resize(request.terminal_id, cols=100, rows=30)
    listed = await host.list_terminals()
    assert [(t.cols, t.rows) for t in listed] == [(100, 30)]
    await host.end(request.terminal_id)
    with pytest.raises(TerminalNotRunning):
        await host.resize(request.terminal_id, cols=90, rows=30)


async def test_a_removed_terminal_is_unknown(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    request = new_terminal("cat")
    terminal = await host.create(request)
    await host.remove(request.terminal_id)
    assert terminal.pid is not None
    assert has_ended(terminal.pid)
    assert await host.list_terminals() == ()
    with pytest.raises(TerminalNotFound):
        await host.end(request.terminal_id)
    with pytest.raises(TerminalNotFound):
        await host.screen_text(TerminalId("terminal:never"), lines=1)


async def test_a_conversation_has_one_terminal(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    first = replace(new_terminal("cat"), conversation_id=CONVERSATION)
    second = replace(new_terminal("cat"), conversation_id=CONVERSATION)
    await host.create(first)
    with pytest.raises(OutsideSessionResumed) as refused:
        await host.create(second)
    assert refused.value.terminal_id == first.terminal_id
    await host.end(first.terminal_id)
    await host.create(second)


async def test_the_lock_follows_the_conversation_the_program_moved_to(
    host: HostClient, new_terminal: NewTerminal
) -> None:
    first = replace(new_terminal("cat"), conversation_id=CONVERSATION)
    await host.create(first)
    await host.hold_conversation(first.terminal_id, OTHER_CONVERSATION)
    second = replace(new_terminal("cat"), conversation_id=CONVERSATION)
    await host.create(second)
    with pytest.raises(OutsideSessionResumed):
        await host.hold_conversation(second.terminal_id, OTHER_CONVERSATION)


@pytest.mark.parametrize(
    "start",
    [
        "setsid sleep 3600 & echo $! >pid; sleep 3600",
        "(setsid sleep 3600 & echo $! >pid); sleep 3600",
        "(env -i setsid sh -c 'echo $$ >pid; exec sleep 3600' &); sleep 3600",
        "trap '' HUP; echo $$ >pid; while :; do sleep 3600; done",
        "(trap '' HUP; nohup sleep 3600 >/dev/null & echo $! >pid); sleep 3600",
    ],
    ids=["setsid", "orphan", "orphan without a mark", "ignores SIGHUP", "nohup"],
)
async def test_ending_leaves_no_process_behind(
    host: HostClient, new_terminal: NewTerminal, tmp_path: Path, start: str
) -> None:
    request = new_terminal("sh", "-c", start)
    await host.create(request)
    written = tmp_path / "pid"
    text = wait_for(lambda: written.exists() and written.read_text().strip(), "the pid")
    await host.end(request.terminal_id)
    assert has_ended(int(text))


async def test_what_a_program_left_behind_goes_when_it_exits_by_itself(
    host: HostClient, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    request = new_terminal("sh", "-c", "setsid sleep 3600 & echo $! >pid; exit 4")
    await host.create(request)
    assert (await until_exited(host, request.terminal_id)).exit_status == 4
    assert has_ended(int((tmp_path / "pid").read_text()))


async def test_ending_one_terminal_spares_the_orphans_of_another(
    host: HostClient, new_terminal: NewTerminal, tmp_path: Path
) -> None:
    other = new_terminal("sh", "-c", "(setsid sleep 3600 & echo $! >pid); sleep 3600")
    await host.create(other)
    written = tmp_path / "pid"
    text = wait_for(lambda: written.exists() and written.read_text().strip(), "the pid")
    mine = new_terminal("cat")
    await host.create(mine)
    await host.end(mine.terminal_id)
    assert not has_ended(int(text))
