"""What the real CLI (2.1.328) told its hooks and its callers, as recorded.

These tests pin the shape of the data, field by field (docs/discovery.md): a newer
recording that differs shows here first, before any parser meets it.
"""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from sidestage.agents.claude_code.folding import Fold, fold_line
from sidestage.agents.claude_code.lines import LineSplitter
from sidestage.agents.claude_code.live import LiveProcesses, RegistryFolder, look
from sidestage.agents.claude_code.registry import parse_registry
from sidestage.agents.claude_code.rows import waiting_for
from sidestage.sessions.evidence import judge
from sidestage.sessions.model import SessionState, WaitingKind
from tests.fakes.processes import FakeProcesses

DATA = Path(__file__).parents[1] / "data" / "claude"
HOOKS = sorted((DATA / "hooks").glob("*.json"))

TOOL = ("prompt_id", "permission_mode", "effort", "tool_name", "tool_input")
FIELDS = {
    "ConfigChange": ("prompt_id", "source", "file_path"),
    "CwdChanged": ("prompt_id", "old_cwd", "new_cwd"),
    "InstructionsLoaded": ("file_path", "memory_type", "load_reason"),
    "MessageDisplay": ("turn_id", "message_id", "index", "final", "delta"),
    "Notification": ("prompt_id", "message", "notification_type"),
    "PermissionRequest": TOOL,
    "PostCompact": ("prompt_id", "trigger", "compact_summary"),
    "PostToolBatch": ("prompt_id", "permission_mode", "tool_calls"),
    "PostToolUse": (*TOOL, "tool_use_id", "tool_response", "duration_ms"),
    "PostToolUseFailure": (*TOOL, "tool_use_id", "error", "is_interrupt"),
    "PreCompact": ("prompt_id", "trigger"),
    "PreModelSwitch": ("prompt_id", "source", "from_model", "to_model"),
    "PreToolUse": (*TOOL, "tool_use_id"),
    "SessionEnd": ("prompt_id", "reason"),
    "SessionStart": ("source",),
    "Stop": (
        *("prompt_id", "permission_mode", "stop_hook_active"),
        *("last_assistant_message", "background_tasks", "session_crons"),
    ),
    "StopFailure": ("prompt_id", "error", "last_assistant_message"),
    "SubagentStart": ("agent_id", "agent_type"),
    "SubagentStop": (
        *("agent_id", "agent_type", "agent_transcript_path"),
        *("last_assistant_message", "stop_hook_active"),
    ),
    "UserPromptExpansion": (
        *("prompt_id", "prompt", "expansion_type"),
        *("command_name", "command_args", "command_source"),
    ),
    "UserPromptSubmit": ("prompt_id", "permission_mode", "prompt"),
}
"""The fields that every recording of an event has, beside the common ones."""

KINDS = {
    ("SessionStart", "source"): {"startup", "resume", "fork", "clear", "compact"},
    ("SessionEnd", "reason"): {"prompt_input_exit", "clear", "resume", "other"},
    ("Notification", "notification_type"): {
        *("permission_prompt", "idle_prompt", "agent_needs_input"),
    },
    ("PreCompact", "trigger"): {"manual", "auto"},
    ("PostCompact", "trigger"): {"manual", "auto"},
}
"""The values each kind was recorded with: all of them, and no other."""


def read_payload(path: Path) -> dict[str, Any]:
    """Return what the hook got: on its standard input, or as the body of a POST."""
    values: dict[str, Any] = json.loads(path.read_bytes())
    payload: dict[str, Any] = values.get("body", values)
    return payload


@pytest.mark.parametrize("path", HOOKS, ids=lambda path: path.stem)
def test_a_recorded_hook_names_its_event_conversation_and_folder(path: Path) -> None:
    payload = read_payload(path)
    transcript = Path(payload["transcript_path"])
    assert str(UUID(payload["session_id"])) == payload["session_id"]
    assert transcript.is_absolute()
    assert transcript.name == f"{payload['session_id']}.jsonl"
    assert Path(payload["cwd"]).is_absolute()
    if path.stem != "http-request-example":
        assert path.name.startswith(f"{payload['hook_event_name']}.")


@pytest.mark.parametrize("path", HOOKS, ids=lambda path: path.stem)
def test_a_recorded_hook_has_the_fields_of_its_event(path: Path) -> None:
    payload = read_payload(path)
    missing = set(FIELDS[payload["hook_event_name"]]) - set(payload)
    assert not missing
    assert isinstance(payload.get("tool_input", {}), dict)
    assert ("agent_id" in payload) is ("agent_type" in payload)


def test_every_event_was_recorded_with_every_kind_it_has() -> None:
    payloads = [read_payload(path) for path in HOOKS]
    assert {payload["hook_event_name"] for payload in payloads} == set(FIELDS)
    for (event, field), kinds in KINDS.items():
        told = [it[field] for it in payloads if it["hook_event_name"] == event]
        assert Counter(told).keys() == kinds


def test_a_permission_is_matched_by_prompt_and_input_for_it_has_no_call_id() -> None:
    """Exactly one recorded call is the one that opened each recorded dialog."""
    matched = ("session_id", "prompt_id", "tool_name", "tool_input")
    for path in HOOKS:
        if not path.stem.startswith("PermissionRequest."):
            continue
        asked = read_payload(path)
        calls = [
            call
            for call in map(read_payload, HOOKS)
            if call["hook_event_name"] == "PreToolUse"
            and all(call[key] == asked[key] for key in matched)
        ]
        assert "tool_use_id" not in asked
        assert [bool(call["tool_use_id"]) for call in calls] == [True], path.stem


def test_a_hook_over_http_posts_what_a_program_reads() -> None:
    request = json.loads((DATA / "hooks" / "http-request-example.json").read_bytes())
    program = read_payload(DATA / "hooks" / "PermissionRequest.Bash.json")
    assert request["method"] == "POST"
    assert request["headers"]["Content-Type"] == "application/json"
    assert set(request["body"]) == set(program)


def test_our_state_is_the_one_that_claude_agents_prints(tmp_path: Path) -> None:
    """Both were recorded while the same question stood open."""
    (printed,) = json.loads((DATA / "agents-json.input-needed.json").read_bytes())
    timeline = (DATA / "sessions-timeline.jsonl").read_text().splitlines()
    contents = [json.loads(line).get("content") for line in timeline]
    content = next(
        it for it in contents if it and it.get("waitingFor") == printed["waitingFor"]
    )
    told = {key: content.get(key) for key in printed}
    assert told == printed

    file = tmp_path / f"{printed['pid']}.json"
    file.write_text(json.dumps(content))
    entry = parse_registry(file.read_bytes())
    assert entry is not None
    now = datetime.fromtimestamp(content["updatedAt"] / 1000, UTC)
    table = FakeProcesses({printed["pid"]: content["procStart"]})
    live = LiveProcesses(directory_of=lambda _: printed["cwd"])
    live.apply(look(RegistryFolder(tmp_path, tmp_path), str(file), table, now))
    evidence = live.evidence(entry.conversation_id)
    verdict = judge(evidence, bystander=None, looked_at=now)
    assert (printed["status"], verdict.state) == ("waiting", SessionState.ASKING)
    waits = waiting_for(Fold(), verdict, now)
    assert waits is not None
    assert (waits.label, waits.kind) == (printed["waitingFor"], WaitingKind.QUESTION)


def test_a_headless_run_prints_its_answer_as_its_transcript_records_it() -> None:
    """`claude -p --output-format stream-json`: the same records, other brackets."""
    data = (DATA / "headless-stream-json.jsonl").read_bytes()
    lines = list(map(json.loads, data.splitlines()))
    assert [line["type"] for line in lines] == [
        *("system", "system", "system", "assistant", "result"),
    ]
    assert len({line["session_id"] for line in lines}) == 1
    fold = Fold()
    for told in LineSplitter().feed(data if data.endswith(b"\n") else data + b"\n"):
        fold_line(fold, told, lines[0]["session_id"])
    assert fold.bad_lines == 0
    assert fold.last_text == lines[-1]["result"]
    assert fold.directory == lines[2]["cwd"]


def test_nothing_recorded_names_a_person_or_a_machine() -> None:
    for path in (*HOOKS, *DATA.glob("*.json*")):
        text = path.read_text()
        assert "/root" not in text, path.name
        assert text.count("/home/") == text.count("/home/dev"), path.name
