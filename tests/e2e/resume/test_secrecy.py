"""Line 14: what leaves the server never names a conversation.

Everything that a client, a reader of logs or another user of the machine can get hold
of is collected while a session is watched, refused, resumed, contested, lost and
closed. What the agent itself prints is left out: terminal bytes, screens, and the
arguments of the agent and of bubblewrap.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
import psutil
import pytest
from graphql import GraphQLSchema, build_schema

from tests.e2e.real_claude import CHECKOUT, READY, Json
from tests.e2e.resume.bench import Conversation, ResumeBench, say
from tests.e2e.resume.everything import select_each, select_everything
from tests.e2e.running_server import Feed, RunningServer
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(240)]

AGENT_PROGRAMS: Final = ("claude", "bwrap")


class RecordingServer(RunningServer):
    """Keeps every answer it gives, with its headers and its address."""

    def __init__(self, *, environment: Mapping[str, str]) -> None:
        super().__init__(environment=environment, arguments=["--log-level", "debug"])
        self.answers: list[str] = []

    def post(
        self,
        document: str,
        variables: Json | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send an operation; keep the whole answer."""
        answer = super().post(document, variables, token=token, headers=headers)
        self.answers.append(f"{answer.url}\n{answer.headers}\n{answer.text}")
        return answer


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ResumeBench]:
    with ResumeBench.open(tmp_path, make_server=RecordingServer) as bench:
        yield bench


def test_what_leaves_the_server_never_names_a_conversation(bench: ResumeBench) -> None:
    schema = build_schema((CHECKOUT / "schema.graphql").read_text())
    session = bench.say_headless("first words")
    with ExitStack() as stack:
        feeds = [
            stack.enter_context(bench.server.follow(document, {"id": session.id}))
            for document in subscriptions(schema)
        ]
        titles = live_through_everything(bench, session, schema)
        bench.wait_ended(session)
        metrics = read_metrics(bench)
        for feed in feeds:
            take_all(feed)
        frames = [message for feed in feeds for message in feed.messages]
    assert all(feed.messages for feed in feeds)
    told = {
        "answers": "\n".join(recorded(bench)),
        "frames": json.dumps(frames),
        "titles": "\n".join(titles),
        "the command line": "\n".join(ask_by_command(bench)),
        "logs": "\n".join(read_logs(bench)),
        "metrics": metrics,
    }
    # The collection is no empty one.
    assert session.id in told["answers"]
    assert session.id in told["frames"]
    assert session.id in told["the command line"]
    assert "terminal_host.host" in told["titles"]
    assert "could not be prepared" in told["answers"]
    assert "sidestage_sessions" in told["metrics"]
    for id_ in (session.id, bench.project_id):
        assert id_ not in told["metrics"]
    for what, text in told.items():
        assert not names(text, session.conversation_id), what


def live_through_everything(
    bench: ResumeBench, session: Conversation, schema: GraphQLSchema
) -> list[str]:
    """Take the session through all that is answered or logged; return titles seen."""
    server = bench.server
    with bench.keyboard("--resume", session.conversation_id) as keyboard:
        keyboard.wait_for(READY)
        bench.wait_row(session.id, lambda row: row["state"] == "IDLE")
        assert server.resume(session.id)["code"] == "OUTSIDE_SESSION_LIVE"
        ask_everything(bench, session, schema)
        keyboard.send("/exit\r")
        keyboard.wait_end()
    bench.wait_ended(session)

    terminals = server.state_dir / "terminals"
    terminals.chmod(0o500)  # a start that fails, and is logged
    assert server.resume(session.id)["code"] == "START_FAILED"
    terminals.chmod(0o700)

    started = server.resume(session.id, key="once")
    terminal_id = started["terminal"]["id"]
    with server.attach(started["ticket"]) as client:
        client.wait_for("Stub answer to: first words")
        say(client, session, "and on")
        client.wait_for("Stub answer to: and on")
        assert server.resume(session.id)["code"] == "OUTSIDE_SESSION_RESUMED"
        with bench.keyboard("--resume", session.conversation_id) as keyboard:
            keyboard.wait_for(READY)
            bench.wait_row(session.id, lambda row: row["conflict"])
            ask_everything(bench, session, schema)
            titles = titles_of_ours(bench)
        server.answers.append(json.dumps(client.messages))  # type: ignore[attr-defined]  # a RecordingServer
    host = server.host_pid()
    assert host is not None
    os.kill(host, signal.SIGKILL)  # the terminal is lost
    wait_for(lambda: bench.terminals()[0]["state"] == "LOST", "it is lost", seconds=60)
    ask_everything(bench, session, schema)
    server.close_terminal(terminal_id)
    return titles


def subscriptions(schema: GraphQLSchema) -> Iterator[str]:
    """Yield a document a feed, with every field."""
    fields = schema.type_map["Subscription"].fields  # type: ignore[attr-defined]  # an object type
    for name, field in fields.items():
        kind = str(field.type).rstrip("!")
        selection = select_everything(schema, kind, depth=2, pages=False)
        of_session = "sessionId" in field.args
        given, argument = ("($id: ID!)", "(sessionId: $id)") if of_session else ("", "")
        yield f"subscription{given} {{ {name}{argument} {{ {selection} }} }}"


def ask_everything(
    bench: ResumeBench, session: Conversation, schema: GraphQLSchema
) -> None:
    """Query every field of every root field, and of every node there is."""
    root = schema.type_map["Query"]
    for name, field in root.fields.items():  # type: ignore[attr-defined]  # an object type
        if name in {"node", "nodes", "sessionCounts", "usage"}:
            continue
        kind = str(field.type).strip("[]!")
        page = "(first: 5)" if "first" in field.args else ""
        selection = select_everything(schema, kind, depth=1)
        ask_patiently(bench, f"{{ {name}{page} {{ {selection} }} }}", {})
    for kind, id_ in (("OutsideSession", session.id), ("Project", bench.project_id)):
        document = "query($id: ID!) {{ node(id: $id) {{ ... on {} {{ {} }} }} }}"
        for selection in select_each(schema, kind, depth=2):
            ask_patiently(bench, document.format(kind, selection), {"id": id_})


def ask_patiently(bench: ResumeBench, document: str, variables: dict[str, str]) -> None:
    """Run a query that must succeed, as soon as the caller's rate allows it."""

    def is_answered() -> bool:
        answer = bench.server.post(document, variables).json()
        errors = answer.get("errors", [])
        if any(it["extensions"]["code"] == "RATE_LIMITED" for it in errors):
            return False
        assert not errors, errors
        return True

    wait_for(is_answered, "the rate allows a query", seconds=60)


def recorded(bench: ResumeBench) -> list[str]:
    assert isinstance(bench.server, RecordingServer)
    return bench.server.answers


def take_all(feed: Feed) -> None:
    """Take in what waits, until nothing came for a moment."""
    while True:
        try:
            feed.next(0.5)
        except TimeoutError:
            return


def read_metrics(bench: ResumeBench) -> str:
    """Return what Prometheus would read."""
    headers = {"Authorization": f"Bearer {bench.server.token}"}
    return httpx.get(f"{bench.server.url}/metrics", headers=headers, timeout=30).text


def titles_of_ours(bench: ResumeBench) -> list[str]:
    """Return names and arguments of all our processes but agents and bubblewrap."""
    host = bench.server.host_pid()
    assert host is not None
    roots = [psutil.Process(bench.server.pid), psutil.Process(host)]
    family = roots + [it for root in roots for it in root.children(recursive=True)]
    return [
        f"{process.name()} {process.cmdline()}"
        for process in family
        if process.name() not in AGENT_PROGRAMS
    ]


def ask_by_command(bench: ResumeBench) -> list[str]:
    """Return what the command line prints of sessions, terminals and health."""
    commands = (
        ("sessions",),
        ("sessions", "--json"),
        ("projects", "list"),
        ("doctor", "--json"),
    )
    return [
        subprocess.run(
            [sys.executable, "-P", "-m", "sidestage", *command],
            env=bench.server.environment,
            cwd=bench.claude.home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        ).stdout
        for command in commands
    ]


def read_logs(bench: ResumeBench) -> list[str]:
    return [bench.server.log.read_text(), *map(Path.read_text, host_logs(bench))]


def host_logs(bench: ResumeBench) -> list[Path]:
    found = sorted(bench.server.state_dir.glob("host.log*"))
    assert found
    return found


def names(text: str, conversation_id: str) -> bool:
    """Tell whether *text* holds the id, in whatever case and with or without dashes."""
    flat = text.lower().replace("-", "")
    return conversation_id.lower().replace("-", "") in flat
