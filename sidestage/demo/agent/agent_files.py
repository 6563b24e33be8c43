"""What the scripted agent leaves on disk, in the real one's form. Stdlib only."""

import hashlib
import json
import os
import re
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

VERSION = "2.1.328"
MODEL = "claude-opus-5-5"
NAME_LIMIT_CHARACTERS = 200


def config_dir() -> Path:
    """Return the agent's state folder."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(named) if named else Path.home() / ".claude"


def config_file() -> Path:
    """Return the file that says which folders are trusted."""
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(named) / ".claude.json" if named else Path.home() / ".claude.json"


def encode_folder(folder: str) -> str:
    """Return the name of a folder's transcripts."""
    encoded = re.sub(r"[^A-Za-z0-9]", "-", folder)
    if len(encoded) <= NAME_LIMIT_CHARACTERS:
        return encoded
    digest = hashlib.sha256(folder.encode()).hexdigest()
    return f"{encoded[:NAME_LIMIT_CHARACTERS]}-{digest[:6]}"


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return int(time.time() * 1000)


class Registry:
    """This process's file in `sessions/`, and the key beside it."""

    def __init__(self, conversation: str, name: str | None, *, headless: bool) -> None:
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        folder = Path.cwd()
        self.path = config_dir() / "sessions" / f"{os.getpid()}.json"
        self.key = self.path.with_name(f"{os.getpid()}.{uuid.uuid4().hex}.key")
        self.values: dict[str, Any] = {
            "pid": os.getpid(),
            "sessionId": conversation,
            "cwd": str(folder),
            "startedAt": now_ms(),
            "procStart": stat[19],
            "version": VERSION,
            "kind": "interactive",
            "entrypoint": "sdk-cli" if headless else "cli",
            "pidDomain": f"linux:{_machine()}:{Path('/proc/self/ns/pid').readlink()}",
            "name": name or f"{folder.name}-{os.getpid() % 256:02x}",
            "nameSource": "user" if name else "derived",
        }

    def write(self, **changes: object) -> None:
        """Rewrite the file in place with *changes*; None takes a value out."""
        moment = now_ms()
        if "status" in changes:
            changes["statusUpdatedAt"] = moment
        self.values.update(changes, updatedAt=moment)
        self.values = {key: it for key, it in self.values.items() if it is not None}
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.write_text(json.dumps(self.values, separators=(",", ":")))
        if not self.key.exists():
            self.key.write_text("[secret]")

    def remove(self) -> None:
        """Delete the files, as every orderly end does."""
        self.path.unlink(missing_ok=True)
        self.key.unlink(missing_ok=True)


def _machine() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


class NoConversation(Exception):
    """There is no transcript with that id."""


def find_transcript(conversation: str) -> Path:
    """Return the transcript in any project; raises `NoConversation`."""
    for path in (config_dir() / "projects").glob("*/*.jsonl"):
        if path.stem == conversation:
            return path
    raise NoConversation(conversation)


class Transcript:
    """A conversation's file: appended to, made at the first prompt."""

    def __init__(self, conversation: str, path: Path | None = None) -> None:
        self.conversation = conversation
        self.path = path or (
            config_dir()
            / "projects"
            / encode_folder(os.path.realpath(Path.cwd()))
            / f"{conversation}.jsonl"
        )
        self.records: list[dict[str, Any]] = []
        self.pending: list[dict[str, Any]] = []
        """Written before the first prompt: a new conversation's head."""
        self.headless = False

    @classmethod
    def load(cls, conversation: str) -> "Transcript":
        """Return the transcript on disk; raises `NoConversation`."""
        path = find_transcript(conversation)
        transcript = cls(conversation, path)
        for line in path.read_text().splitlines():
            transcript.records.append(json.loads(line))
        return transcript

    def fork(self, conversation: str, *, marks: bool) -> "Transcript":
        """Return a copy under another id; *marks* puts `forkedFrom` (`/branch`)."""
        copy = Transcript(conversation)
        for record in self.records:
            if "uuid" not in record and "customTitle" not in record:
                continue
            fresh = {**record, "sessionId": conversation}
            if record["type"] == "assistant":
                fresh.setdefault("requestSessionId", self.conversation)
            if marks and "uuid" in record:
                fresh["forkedFrom"] = {
                    "sessionId": self.conversation,
                    "messageUuid": record["uuid"],
                }
            copy.pending.append(fresh)
        return copy

    @property
    def leaf(self) -> str | None:
        """The newest record of the tree."""
        for record in reversed([*self.records, *self.pending]):
            if "uuid" in record:
                return str(record["uuid"])
        return None

    def open_calls(self) -> list[str]:
        """Return the tool calls without a result."""
        calls: list[str] = []
        for record in [*self.records, *self.pending]:
            content = record.get("message", {}).get("content")
            for block in content if isinstance(content, list) else []:
                if block["type"] == "tool_use":
                    calls.append(block["id"])
                elif block["type"] == "tool_result" and block["tool_use_id"] in calls:
                    calls.remove(block["tool_use_id"])
        return calls

    def turns(self) -> list[tuple[str, str]]:
        """Return what was said: pairs of role and text."""
        said: list[tuple[str, str]] = []
        for record in [*self.records, *self.pending]:
            if record["type"] not in ("user", "assistant"):
                continue
            content = record["message"]["content"]
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            said += [(record["type"], it["text"]) for it in content if "text" in it]
        return said

    def state(self, kind: str, **fields: object) -> None:
        """Append a record that stands outside of the tree."""
        self._append({"type": kind, "sessionId": self.conversation, **fields})

    def tree(self, kind: str, **fields: object) -> str:
        """Append a record of the tree below the newest one; return its uuid."""
        record = {
            "parentUuid": self.leaf,
            "isSidechain": False,
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds")[:-6]
            + "Z",
            "userType": "external",
            "entrypoint": "sdk-cli" if self.headless else "cli",
            "cwd": str(Path.cwd()),
            "sessionId": self.conversation,
            "version": VERSION,
            "gitBranch": "main",
            **fields,
        }
        self._append(record)
        return str(record["uuid"])

    def answer(self, *blocks: dict[str, Any], **fields: object) -> None:
        """Append a model's answer, one record a block."""
        message_id = f"msg_{uuid.uuid4().hex[:16]}"
        for block in blocks:
            message = {
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "model": fields.get("model", MODEL),
                "content": [block],
                "stop_reason": "tool_use"
                if block["type"] == "tool_use"
                else "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 10},
            }
            self.tree("assistant", message=message, **fields)

    def result(self, call: str, text: str, **fields: object) -> None:
        """Append a tool's result."""
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        self.tree("user", message={"role": "user", "content": [block]}, **fields)

    def _append(self, record: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = [*self.pending, record]
        self.pending = []
        self.records += fresh
        data = "".join(
            json.dumps(it, separators=(",", ":"), ensure_ascii=False) + "\n"
            for it in fresh
        )
        self.path.touch(mode=0o600)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(data)
