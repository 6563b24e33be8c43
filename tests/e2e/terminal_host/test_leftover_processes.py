"""A terminal some of whose processes do not end is not reported as ended."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sidestage.errors import TerminalNotEnded
from sidestage.terminals.model import CreateTerminal
from terminal_host.host import ending
from terminal_host.host.processes import ProcessKey, end_processes
from terminal_host.host.recorder import Recorder
from terminal_host.host.records import RecordLimits, RecordStore
from terminal_host.host.sandbox import BubblewrapConfiner
from terminal_host.host.terminals import HostedTerminals, HostLimits
from terminal_host.screen import make_engine
from tests.waiting import wait_for

NewTerminal = Callable[..., CreateTerminal]
STUCK = {ProcessKey(1, 1)}


def host_in_process(folder: Path) -> HostedTerminals:
    store = RecordStore(folder / "screens", RecordLimits())
    assert store.open() == ()
    return HostedTerminals(
        folder / "terminals",
        BubblewrapConfiner(),
        make_engine,
        recorder=Recorder(store),
        limits=HostLimits(),
    )


async def test_what_does_not_end_is_told_and_tried_again(
    tmp_path: Path,
    new_terminal: NewTerminal,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It answered that all was gone, and only the log knew better."""
    tries: list[str] = []

    def end(*arguments: object, **named: object) -> set[ProcessKey]:
        end_processes(*arguments, **named)  # type: ignore[arg-type]  # passed on as it came
        return STUCK

    def kill(*_: object, **__: object) -> set[ProcessKey]:
        tries.append("kill")
        return STUCK if len(tries) < 3 else set()

    monkeypatch.setattr(ending, "end_processes", end)
    monkeypatch.setattr(ending, "kill_processes", kill)
    monkeypatch.setattr(ending, "RETRY_SECONDS", (0.01,) * 4)
    host = host_in_process(tmp_path)
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, host.reap)
    request = new_terminal("cat")
    await host.create(request)
    with pytest.raises(TerminalNotEnded, match="1 processes"):
        await host.remove(request.terminal_id)
    assert host.get(request.terminal_id)
    note = tmp_path / "terminals" / request.terminal_id
    await asyncio.to_thread(wait_for, lambda: not note.exists(), "the last try")
    assert len(tries) == 3
    assert sum("do not end" in line for line in caplog.messages) == 1
    await host.remove(request.terminal_id)
    assert host.values() == ()
    await host.close()
