"""What the CLI tells its hooks, as events."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code.hooks import (
    PAYLOAD_LIMIT_BYTES,
    find_activity,
    parse_hook,
)
from sidestage.ids import SessionId
from sidestage.sessions.hooks import HookEvent, HookKind
from sidestage.sessions.model import EvidenceSource, Process, SessionState

FIXTURES = sorted(
    path
    for path in (Path(__file__).parents[1] / "data" / "claude" / "hooks").glob("*.json")
    if path.name != "http-request-example.json"
)
RUN = Process(7, "70")
AT = datetime(2026, 12, 1, tzinfo=UTC)
NOON = {"session_id": "a", "hook_event_name": "Stop"}


def event_of(name: str, **more: Any) -> HookEvent:
    [path] = [it for it in FIXTURES if it.stem == name]
    payload = parse_hook(json.dumps(json.loads(path.read_bytes()) | more).encode())
    assert payload is not None
    return payload.to_event(SessionId("outside:1"), at=AT, run=RUN)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_each_recorded_payload_is_an_event_of_its_conversation(path: Path) -> None:
    values = json.loads(path.read_bytes())
    payload = parse_hook(path.read_bytes())
    assert payload is not None
    assert payload.conversation_id == values["session_id"]
    assert payload.is_from_subagent == ("agent_id" in values)
    assert payload.values == values
    assert not payload.is_cut
    known = values["hook_event_name"] in {
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "Notification",
        "Stop",
        "StopFailure",
        "SubagentStop",
    }
    assert (payload.kind is not HookKind.OTHER) == known


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_cut_doubled_and_garbled_payloads_are_no_event_and_no_crash(path: Path) -> None:
    data = path.read_bytes()
    for end in range(0, len(data.rstrip()), 7):
        assert parse_hook(data[:end]) is None
    assert parse_hook(data + data) is None
    generator = random.Random(1)
    for _ in range(200):
        garbled = bytearray(data)
        for _ in range(3):
            garbled[generator.randrange(len(garbled))] = generator.randrange(256)
        payload = parse_hook(bytes(garbled))
        if payload is not None:
            find_activity(payload.to_event(SessionId("outside:1"), at=AT, run=RUN))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"session_id": 5, "hook_event_name": "Stop"}',
        b'{"session_id": "", "hook_event_name": "Stop"}',
        b'{"session_id": "a"}',
        b'{"session_id": "a", "hook_event_name": ["Stop"]}',
        json.dumps(NOON | {"session_id": "a" * 200}).encode(),
        b"[" * 100_000,
    ],
)
def test_what_names_no_session_or_event_is_none(data: bytes) -> None:
    assert parse_hook(data) is None


def test_of_a_payload_that_is_too_large_the_largest_values_are_left_out() -> None:
    small = NOON | {"last_assistant_message": "Which one?"}
    payload = parse_hook(
        json.dumps(small | {"big": "x" * PAYLOAD_LIMIT_BYTES, "also": "y" * 9}).encode()
    )
    assert payload is not None
    assert payload.values == small | {"also": "y" * 9}
    assert payload.is_cut


@pytest.mark.parametrize(
    ("name", "state", "label"),
    [
        ("UserPromptSubmit", SessionState.RUNNING, None),
        ("PreToolUse.Bash", SessionState.RUNNING, None),
        ("PostToolUse.Bash", SessionState.RUNNING, None),
        ("PostToolUseFailure.Bash", SessionState.RUNNING, None),
        ("Stop", SessionState.IDLE, None),
        ("StopFailure", SessionState.IDLE, None),
        ("PermissionRequest.Bash", SessionState.ASKING, "permission prompt"),
        ("PermissionRequest.subagent.Bash", SessionState.ASKING, "permission prompt"),
        ("PermissionRequest.AskUserQuestion", SessionState.ASKING, "input needed"),
    ],
)
def test_an_event_says_what_its_run_does(
    name: str, state: SessionState, label: str | None
) -> None:
    activity = find_activity(event_of(name))
    assert activity is not None
    assert (activity.run, activity.at, activity.source) == (
        RUN,
        AT,
        EvidenceSource.HOOK,
    )
    assert (activity.state, activity.label) == (state, label)


@pytest.mark.parametrize(
    "name",
    [
        "SessionStart.startup",
        "SessionEnd.other",
        "Notification.permission_prompt",
        "SubagentStop",
        "PreToolUse.subagent.Bash",
        "PostToolUse.subagent.Bash",
        "PreCompact.auto",
    ],
)
def test_an_event_that_tells_nothing_of_the_session_itself_is_no_activity(
    name: str,
) -> None:
    assert find_activity(event_of(name)) is None


def test_where_no_dialog_opens_a_permission_request_does_not_ask() -> None:
    event = event_of("PermissionRequest.Bash", permission_mode="bypassPermissions")
    assert find_activity(event) is None


def test_a_tool_that_was_interrupted_does_not_run() -> None:
    event = event_of("PostToolUseFailure.Bash", is_interrupt=True)
    assert find_activity(event) is None


def test_an_event_without_a_run_is_no_evidence() -> None:
    payload = parse_hook(json.dumps(NOON).encode())
    assert payload is not None
    event = payload.to_event(SessionId("outside:1"), at=AT, run=None)
    assert find_activity(event) is None
