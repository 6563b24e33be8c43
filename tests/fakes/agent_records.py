"""Builds files as Claude Code writes them, for tests that need their own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONVERSATION = "0b2f6c1e-93a5-4d0e-8f42-6d1c2a9b7e55"
FOLDER = "/home/dev/project"


def uuid_of(number: int) -> str:
    """Return the uuid of the record with that number."""
    return f"00000000-0000-4000-8000-{number:012x}"


def time_of(seconds: int) -> str:
    """Return the time *seconds* after noon, as the CLI writes it."""
    hours, rest = divmod(12 * 3600 + seconds, 3600)
    return f"2026-11-30T{hours:02}:{rest // 60:02}:{rest % 60:02}.000Z"


def tree_record(
    kind: str, number: int, parent: int | None, **fields: Any
) -> dict[str, Any]:
    """Return a record of the conversation's tree."""
    return {
        "parentUuid": None if parent is None else uuid_of(parent),
        "isSidechain": False,
        "type": kind,
        "uuid": uuid_of(number),
        "timestamp": time_of(number),
        "sessionId": CONVERSATION,
        "cwd": FOLDER,
        "gitBranch": "main",
        "version": "2.1.328",
        **fields,
    }


def prompt(number: int, parent: int | None, text: str, **fields: Any) -> dict[str, Any]:
    """Return what a person typed."""
    return tree_record(
        "user",
        number,
        parent,
        message={"role": "user", "content": text},
        origin={"kind": "human"},
        promptSource="typed",
        **fields,
    )


def answer(
    number: int,
    parent: int | None,
    *blocks: Mapping[str, Any],
    message: str | None = None,
    tokens: int = 5,
    **fields: Any,
) -> dict[str, Any]:
    """Return a record of a model's answer."""
    return tree_record(
        "assistant",
        number,
        parent,
        message={
            "id": message or f"msg_{number}",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": list(blocks),
            "usage": {"input_tokens": 10, "output_tokens": tokens},
        },
        **fields,
    )


def text_block(text: str) -> dict[str, str]:
    """Return a block of text."""
    return {"type": "text", "text": text}


def call_block(call: str, name: str = "Bash", **inputs: Any) -> dict[str, Any]:
    """Return a tool call."""
    return {"type": "tool_use", "id": call, "name": name, "input": inputs}


def result(number: int, parent: int, call: str, **fields: Any) -> dict[str, Any]:
    """Return a tool's result."""
    block = {"type": "tool_result", "tool_use_id": call, "content": "done"}
    message = {"role": "user", "content": [block]}
    return tree_record("user", number, parent, message=message, **fields)


def line(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def lines(*records: Mapping[str, Any]) -> bytes:
    """Return records as the content of a file."""
    return b"".join(map(line, records))


def registry(
    pid: int,
    ticks: str,
    domain: str,
    *,
    conversation: str = CONVERSATION,
    **fields: Any,
) -> dict[str, Any]:
    """Return the content of `sessions/<pid>.json`."""
    return {
        "pid": pid,
        "sessionId": conversation,
        "cwd": FOLDER,
        "startedAt": 1796066338671,
        "procStart": ticks,
        "version": "2.1.328",
        "kind": "interactive",
        "entrypoint": "cli",
        "pidDomain": domain,
        "name": "project-86",
        "nameSource": "derived",
        **fields,
    }


def write_transcript(
    config_dir: Path, content: bytes, name: str = CONVERSATION
) -> Path:
    """Write a transcript into the folder of the usual project."""
    path = config_dir / "projects" / "-home-dev-project" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def write_registry(config_dir: Path, values: Mapping[str, Any]) -> Path:
    """Write a registry file."""
    path = config_dir / "sessions" / f"{values['pid']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    return path
