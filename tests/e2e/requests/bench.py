"""The real Claude Code at a keyboard, a server with its hooks installed, and a phone.

with RequestBench.open(tmp_path) as bench:
    with bench.asking("stub:bash(touch x)") as asked:
        bench.phone.answer(asked.request, "allow")
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import READY, RealClaude
from tests.e2e.requests.phone import AnsweringPhone
from tests.e2e.running_server import Feed, Json, RunningServer
from tests.waiting import wait_for

INSTALL: Final = """mutation { installHooks(input: {}) {
  __typename ... on UserError { code message } } }"""
PRESS_LIMIT: Final = 5
PRESSED_SECONDS: Final = 6.0
"""A key that was taken shows on the phone within a second, on a machine of its own."""
WITHDRAWN_SECONDS: Final = 10.0
"""What people are promised within a second, on a machine that is shared."""


@dataclass
class RequestBench:
    """What stands around a request; see the module's text."""

    claude: RealClaude
    server: RunningServer
    project: Path
    phone: AnsweringPhone

    @classmethod
    @contextmanager
    def open(cls, root: Path, **variables: str) -> Iterator[Self]:
        """Run model and server while the block lasts; *variables* are settings."""
        with RealClaude.create(root) as claude:
            project = claude.make_project("project")
            environment = claude.environment(**variables)
            with RunningServer(environment=environment) as server:
                done = server.query(INSTALL)["installHooks"]
                assert done["__typename"] == "InstallHooksPayload", done
                yield cls(claude, server, project, AnsweringPhone.pair(server))

    @contextmanager
    def asking(self, prompt: str, *arguments: str) -> Iterator["Asking"]:
        """Run a session at a keyboard until its agent asks; the phone looks on."""
        older = frozenset(self.claude.transcripts())
        with (
            self.phone.follow() as feed,
            self.claude.start(*arguments, directory=self.project) as terminal,
        ):
            terminal.wait_for(READY)
            terminal.send(prompt)
            terminal.wait_for(r"stub:\w+")
            terminal.send("\r")
            feed.until(lambda: feed.rows)
            yield Asking(self, terminal, feed, older)

    def made(self, name: str) -> bool:
        """Tell whether a tool made a file of that name."""
        return (self.project / name).exists()


@dataclass
class Asking:
    """A session that asks, the keyboard it asks at, and the phone's feed."""

    bench: RequestBench
    terminal: PtyProgram
    feed: Feed
    older: frozenset[Path]
    """The transcripts of other sessions."""

    @property
    def request(self) -> Json:
        """The one request that is open."""
        [request] = self.feed.rows.values()
        return request

    def requests(self, count: int) -> list[Json]:
        """Return the open requests once there are so many."""
        self.feed.until(lambda: len(self.feed.rows) == count)
        return list(self.feed.rows.values())

    def until_withdrawn(self, request: Json) -> Json:
        """Wait until the request left the feed; return what became of it."""
        self.feed.until(
            lambda: request["id"] not in self.feed.rows, seconds=WITHDRAWN_SECONDS
        )
        return self.bench.phone.settled(request["id"])

    def press(self, key: str, holds: Callable[[], object]) -> None:
        """Press *key* once, and again only if it was ignored: until the feed *holds*.

        The CLI ignores keys in the first moment of a dialog; one key too many answers
        the next dialog.
        """
        for _ in range(PRESS_LIMIT):
            self.terminal.send(key)
            with suppress(AssertionError):
                self.feed.until(holds, seconds=PRESSED_SECONDS)
                return
        raise AssertionError(f"the dialog stays:\n{self.terminal.text}")

    def results(self) -> list[str]:
        """Return what the transcript says came of tool calls, in their order."""
        new = set(self.bench.claude.transcripts()) - self.older
        return [result for transcript in new for result in tool_results(transcript)]

    def wait_result(self, text: str) -> None:
        """Wait until a tool call's result holds *text*."""
        wait_for(
            lambda: any(text in result for result in self.results()),
            f"a result with {text!r}",
        )


def tool_results(transcript: Path) -> list[str]:
    """Return the content of every tool result in *transcript*, as JSON."""
    records = map(json.loads, transcript.read_text().splitlines())
    contents = (record.get("message", {}).get("content") for record in records)
    blocks = (it for content in contents if isinstance(content, list) for it in content)
    return [
        json.dumps(block["content"], ensure_ascii=False)
        for block in blocks
        if block.get("type") == "tool_result"
    ]
