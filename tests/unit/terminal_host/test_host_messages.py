"""The host protocol's values: what is written is read, and nothing else is."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.errors import (
    AgentNotFound,
    HostUnavailable,
    InvalidInput,
    OutsideSessionResumed,
    ProjectChanged,
    ProjectFolderMissing,
    SandboxUnavailable,
    SidestageError,
    StartFailed,
    TerminalLimitReached,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.ids import ConversationId, TerminalId
from sidestage.terminals.model import (
    AgentFiles,
    CreateTerminal,
    HostTerminal,
    SandboxProfile,
    SandboxReport,
    TerminalState,
)
from terminal_host.host.control import OPERATIONS
from terminal_host.host_messages import (
    Attached,
    AttachRequest,
    Holder,
    decode_attach,
    decode_attached,
    decode_conversation_id,
    decode_create,
    decode_error,
    decode_holder,
    decode_number,
    decode_side,
    decode_terminal,
    decode_terminal_id,
    encode_attach,
    encode_attached,
    encode_create,
    encode_error,
    encode_terminal,
)
from terminal_host.profile_messages import decode_profile
from terminal_host.screen_messages import decode_line, decode_matches
from terminal_host.wire import FrameDecoder, FrameInvalid, encode_frame
from tests.fakes.json_values import VALUES, damaged

DOCUMENT = (Path(__file__).parents[3] / "docs" / "host-protocol.md").read_text("utf-8")

CREATE = CreateTerminal(
    terminal_id=TerminalId("terminal:0123"),
    argv=("claude", "--resume", "x"),
    environment={"PATH": "/bin", "ODD": "\udcff"},
    directory=Path("/srv/project"),
    cols=80,
    rows=24,
    conversation_id=ConversationId("0b9b7e6c-6f0d-4c53-9f2e-5b1f8f6a7c11"),
    sandbox=SandboxProfile(
        project=Path("/srv/project"),
        project_read_only=True,
        home=Path("/home/me"),
        state_dir=Path("/home/me/.state"),
        program_dirs=(Path("/home/me/bin"),),
        agent=AgentFiles(
            config_dir=Path("/home/me/.claude"),
            transcripts=Path("/home/me/.claude/projects/p"),
            private_dir=Path("/home/me/.state/terminals/t"),
            config_file=Path("/home/me/.claude.json"),
            read_only=(Path("/home/me/.claude/settings.json"),),
            read_write=(Path("/home/me/.claude/.credentials.json"),),
            hook_program=Path("/usr/lib/hook.py"),
        ),
        network=False,
        hidden=(Path("/srv/other"),),
        git_config="[user]\nname = me\n",
    ),
)
AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
TERMINAL = HostTerminal(
    terminal_id=TerminalId("terminal:0123"),
    state=TerminalState.EXITED,
    cols=80,
    rows=24,
    pid=None,
    exit_status=143,
    title="a — title",
    started_at=AT,
    ended_at=AT,
    last_output_at=AT,
    last_input_at=None,
    bell_at=None,
    attached_clients=2,
    sandbox=SandboxReport(
        enabled=True, kind="bubblewrap", signals_confined=True, project_writable=False
    ),
    conversation_id=None,
)
ATTACH = AttachRequest(
    terminal_id=TerminalId("t"), after=None, writable=True, holder=Holder("token")
)
ATTACHED = Attached(
    offset=5, repaint_bytes=0, cols=80, rows=24, running=False, exit_status=3
)


def over_the_wire(message: dict[str, Any]) -> dict[str, Any]:
    decoder = FrameDecoder()
    decoder.feed(encode_frame(message))
    frame = decoder.take()
    assert frame is not None
    return frame


def test_values_survive_the_wire() -> None:
    bare = replace(CREATE, sandbox=None, conversation_id=None)
    shell = replace(CREATE, sandbox=replace(CREATE.sandbox, agent=None))  # type: ignore[type-var]  # it has one
    for request in (CREATE, bare, shell):
        assert decode_create(over_the_wire(encode_create(request))) == request
    assert decode_terminal(over_the_wire(encode_terminal(TERMINAL))) == TERMINAL
    assert decode_attach(over_the_wire(encode_attach(ATTACH))) == ATTACH
    assert decode_attached(over_the_wire(encode_attached(ATTACHED))) == ATTACHED


@pytest.mark.parametrize(
    "kind",
    [
        AgentNotFound,
        HostUnavailable,
        InvalidInput,
        # These two came back as StartFailed: they were not in a list kept by hand.
        ProjectChanged,
        ProjectFolderMissing,
        SandboxUnavailable,
        StartFailed,
        TerminalLimitReached,
        TerminalNotFound,
        TerminalNotRunning,
    ],
)
def test_errors_keep_their_class_and_sentence(kind: type[SidestageError]) -> None:
    error = decode_error(over_the_wire(encode_error(kind("what is wrong"))))
    assert type(error) is kind
    assert str(error) == "what is wrong"


def test_a_conversation_that_is_open_names_its_terminal() -> None:
    sent = OutsideSessionResumed("open", terminal_id="terminal:1")
    error = decode_error(over_the_wire(encode_error(sent)))
    assert isinstance(error, OutsideSessionResumed)
    assert error.terminal_id == "terminal:1"


def test_an_error_of_a_newer_host_is_still_an_error() -> None:
    error = decode_error({"code": "NOT_KNOWN_YET", "message": "sorry"})
    assert type(error) is StartFailed


@pytest.mark.parametrize(
    "change",
    [
        {"terminal_id": ""},
        {"terminal_id": "../x"},
        {"terminal_id": "a/b"},
        {"terminal_id": "x" * 200},
        {"argv": "cat"},
        {"argv": [1]},
        {"argv": ["a\0b"]},
        {"environment": {"A=B": "x"}},
        {"environment": {"": "x"}},
        {"environment": {"A": 1}},
        {"environment": []},
        {"cols": 0},
        {"cols": 501},
        {"rows": True},
        {"rows": 24.0},
        {"sandbox": {}},
        {"sandbox": []},
        {"conversation_id": 5},
        {"directory": None},
    ],
)
def test_a_create_that_is_none_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(FrameInvalid):
        decode_create({**encode_create(CREATE), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"state": "ASLEEP"},
        {"started_at": None},
        {"started_at": "yesterday"},
        {"attached_clients": -1},
        {"sandbox": None},
        {"exit_status": "3"},
    ],
)
def test_a_terminal_that_is_none_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(FrameInvalid):
        decode_terminal({**encode_terminal(TERMINAL), **change})


def test_the_document_lists_every_operation() -> None:
    section = DOCUMENT.split("## Control connection\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(rows) == sorted(OPERATIONS)


Decoder = Callable[[Any], object]
NUMBERED: dict[str, Any] = {"column": 1, "lines_from_end": 2, "line": "x"}
RUN: dict[str, Any] = {"text": "x", "foreground": None, "styles": ["bold"]}
GOOD: list[tuple[Decoder, dict[str, Any]]] = [
    (decode_create, encode_create(CREATE)),
    (decode_terminal, encode_terminal(TERMINAL)),
    (decode_attach, encode_attach(ATTACH)),
    (decode_attached, encode_attached(ATTACHED)),
    (decode_error, encode_error(OutsideSessionResumed("x", terminal_id="t"))),
    (decode_profile, encode_create(CREATE)["sandbox"]),
    (decode_terminal_id, {"terminal_id": "t"}),
    (decode_conversation_id, {"conversation_id": "t"}),
    (decode_holder, {"holder": "t"}),
    (lambda fields: decode_number(fields, "n"), {"n": 1}),
    (lambda fields: decode_side(fields, "n"), {"n": 1}),
    (lambda fields: decode_line([fields]), RUN),
    (decode_matches, {"matches": [], "more": False}),
    (lambda fields: decode_matches({"matches": [fields], "more": True}), NUMBERED),
]


@pytest.mark.parametrize(("decode", "good"), GOOD)
@given(data=st.data())
def test_a_damaged_value_is_refused_or_read_and_nothing_else(
    decode: Decoder, good: dict[str, Any], data: st.DataObject
) -> None:
    decode(good)
    with suppress(FrameInvalid):
        decode(data.draw(damaged(good)))


@pytest.mark.parametrize(
    "decode",
    [
        decode_create,
        decode_terminal,
        decode_attach,
        decode_attached,
        decode_error,
        decode_profile,
        decode_line,
    ],
)
@given(value=VALUES)
def test_any_json_is_refused_or_read_and_nothing_else(
    decode: Decoder, value: object
) -> None:
    with suppress(FrameInvalid):
        decode(value)
