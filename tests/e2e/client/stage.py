"""A home with sessions in every state, for the web client to show.

Live ones are the scripted agent's; ended ones are transcripts, written as Claude Code
writes them, with all that a transcript may hold.
"""

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.e2e.agents.scripted_claude import ScriptedClaude
from tests.e2e.pty_program import PtyProgram

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]")
READY: Final = "❯"
LONG_NAME: Final = (
    "Rework the very long named importer so that it reads 漢字 and emoji 🎭 in names "
    "without everwrappinglikethisunbreakableidentifier_in_the_middle"
)
MARKDOWN: Final = """## What I found

The parser drops the **last** record when the file does not end in a newline. Details:

1. `read_lines` yields only whole lines.
2. The rest stays in the buffer, see [the docs](https://example.com/docs/lines).

- [x] reproduce it
- [ ] mend it

| case | before | after |
|---|---|---|
| newline at the end | 3 | 3 |
| none | 2 | **3** |

```python
def read_lines(data: bytes) -> list[bytes]:
    return data.split(b"\\n")
```

> Careful: the log is read while it grows.

<script>alert("raw")</script> and <b>raw html</b>, ![a beacon](https://evil.example/x.png)
"""


class Conversation:
    """A transcript in the making."""

    def __init__(self, folder: Path, *, started: datetime) -> None:
        self.id = str(uuid.uuid4())
        self._folder = folder
        self._at = started
        self._parent: str | None = None
        self._records: list[dict[str, Any]] = []

    def title(self, text: str) -> None:
        """Give it a title, as `/rename` does."""
        self._records.append(
            {"type": "custom-title", "customTitle": text, "sessionId": self.id}
        )

    def prompt(self, text: str) -> None:
        """Let the person say *text*."""
        message = {"role": "user", "content": text}
        self._add("user", message=message, origin={"kind": "human"})

    def say(self, text: str) -> None:
        """Let the agent say *text*."""
        self._answer({"type": "text", "text": text})

    def think(self, text: str) -> None:
        """Let the agent think *text*."""
        self._answer({"type": "thinking", "thinking": text, "signature": ""})

    def use(
        self, tool: str, inputs: dict[str, Any], output: str, *, fails: bool = False
    ) -> None:
        """Let the agent use a tool."""
        call = f"toolu_{uuid.uuid4().hex[:20]}"
        self._answer({"type": "tool_use", "id": call, "name": tool, "input": inputs})
        block = {
            "type": "tool_result",
            "tool_use_id": call,
            "content": output,
            "is_error": fails,
        }
        self._add("user", message={"role": "user", "content": [block]})

    def write(self, config_dir: Path) -> None:
        """Write it where the agent would."""
        encoded = _NOT_IN_NAMES.sub("-", str(self._folder.resolve()))
        folder = config_dir / "projects" / encoded
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(each, ensure_ascii=False) for each in self._records]
        (folder / f"{self.id}.jsonl").write_text("\n".join(lines) + "\n")

    def _answer(self, block: dict[str, Any]) -> None:
        usage = {
            "input_tokens": 420,
            "output_tokens": 95,
            "cache_read_input_tokens": 21_000,
            "cache_creation_input_tokens": 1_300,
        }
        message = {
            "id": f"msg_{uuid.uuid4().hex[:20]}",
            "role": "assistant",
            "type": "message",
            "model": "claude-opus-5-5",
            "content": [block],
            "usage": usage,
        }
        self._add("assistant", message=message)

    def _add(self, kind: str, **fields: Any) -> None:
        self._at += timedelta(seconds=7)
        record = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "parentUuid": self._parent,
            "sessionId": self.id,
            "cwd": str(self._folder.resolve()),
            "gitBranch": "main",
            "timestamp": self._at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "version": "2.1.328",
            "isSidechain": False,
            "userType": "external",
            "entrypoint": "cli",
            **fields,
        }
        self._parent = str(record["uuid"])
        self._records.append(record)


class Stage:
    """The home, and the agents that run in it."""

    def __init__(self, root: Path) -> None:
        self.agent = ScriptedClaude(root)
        self.folders = {
            name: self.agent.make_project(name)
            for name in ("atlas-api", "storefront", "field-notes")
        }
        self._programs = ExitStack()

    def close(self) -> None:
        """End the agents."""
        self._programs.close()

    def start(self, folder: str, name: str, prompt: str = "") -> PtyProgram:
        """Start an agent that people named *name*, and say *prompt* to it."""
        program = self._programs.enter_context(
            self.agent.start("--name", name, directory=self.folders[folder])
        )
        program.wait_for(READY)
        if prompt:
            program.send(f"{prompt}\r")
        return program

    def write_ended(self) -> None:
        """Write the ended sessions."""
        now = datetime.now(UTC)
        rich = Conversation(self.folders["atlas-api"], started=now - timedelta(hours=3))
        write_rich(rich, self.folders["atlas-api"])
        rich.write(self.agent.config_dir)
        long = Conversation(self.folders["storefront"], started=now - timedelta(days=2))
        long.title(LONG_NAME)
        for number in range(70):
            long.prompt(f"Step {number}: go on, please.")
            long.say(f"Step {number} is done.")
        long.write(self.agent.config_dir)
        elsewhere = self.agent.home / "scratch"
        elsewhere.mkdir()
        other = Conversation(elsewhere, started=now - timedelta(days=5))
        other.prompt("What does this error mean?")
        other.say("It means that the file is not there.")
        other.write(self.agent.config_dir)

    def write_many(self, number: int) -> None:
        """Write *number* further ended sessions."""
        now = datetime.now(UTC)
        for index in range(number):
            each = Conversation(
                self.folders["field-notes"], started=now - timedelta(hours=30 + index)
            )
            each.prompt(f"Note {index}: look into it.")
            each.say("I did.")
            each.write(self.agent.config_dir)


def write_rich(conversation: Conversation, folder: Path) -> None:
    """Write one of everything that a transcript may hold."""
    conversation.title("Mend the line reader")
    conversation.prompt("The importer loses the last record. Find out why and mend it.")
    conversation.think("The file may not end in a newline.")
    conversation.use(
        "Bash", {"command": "pytest -q tests/test_lines.py"}, "1 failed", fails=True
    )
    conversation.say(MARKDOWN)
    conversation.use(
        "Edit",
        {
            "file_path": str(folder / "lines.py"),
            "old_string": "def read_lines(data):\n    return data.split(b'\\n')[:-1]\n",
            "new_string": "def read_lines(data):\n"
            "    lines = data.split(b'\\n')\n"
            "    return lines if lines[-1] else lines[:-1]\n",
        },
        "ok",
    )
    conversation.use("Bash", {"command": "pytest -q tests/test_lines.py"}, "3 passed")
    conversation.say("It reads all records now, and a test holds it to that.")


@contextmanager
def open_stage(root: Path, live: Sequence[str] = ()) -> Iterator[Stage]:
    """Give a stage with ended sessions, and the *live* ones that are named.

    asking, question, working, idle.
    """
    stage = Stage(root)
    try:
        stage.write_ended()
        for each in live:
            _LIVE[each](stage)
        yield stage
    finally:
        stage.close()


_LIVE: Final = {
    "asking": lambda stage: stage.start(
        "atlas-api", "Clean the build folder", "stub:bash(rm -r build/)"
    ),
    "question": lambda stage: stage.start(
        "storefront", "Choose a database", "stub:askuser"
    ),
    "working": lambda stage: stage.start(
        "storefront", "Port the checkout to the new API", "stub:slow(900)"
    ),
    "idle": lambda stage: stage.start(
        "field-notes", "Sort the notes by place", "stub:question"
    ),
}
