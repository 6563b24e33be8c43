"""The whole story with the real Claude Code, from a bare terminal to a closed one."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.real_claude import READY, RealClaude
from tests.e2e.running_server import ROW, RunningServer
from tests.waiting import wait_for

FIRST_WORDS = "stub:slow(3) hello from the keyboard"
FIRST_ANSWER = " ".join(f"word{number}" for number in range(1, 13)) + "."
"""What the stub model says to them, a word at a time over three seconds."""
FEED = f"""subscription {{ outsideSessionFeed {{
  kind cursor more removedIds upserts {{ {ROW} }}
}} }}"""


@pytest.mark.claude
@pytest.mark.timeout(300)
def test_a_session_is_seen_killed_resumed_answered_and_closed(tmp_path: Path) -> None:
    with RealClaude.create(tmp_path) as claude:
        project = claude.make_project("my_proj.v2")
        with RunningServer(environment=claude.environment()) as server:
            server.register_project(project)
            session_id = watch_it_live_and_die(claude, server, project)
            terminal_id = resume_it_and_talk(claude, server, session_id)
            close_it(server, session_id, terminal_id)


def watch_it_live_and_die(
    claude: RealClaude, server: RunningServer, project: Path
) -> str:
    with (
        server.follow(FEED) as feed,
        claude.start(directory=project) as program,
    ):
        program.wait_for(READY)
        program.send(f"{FIRST_WORDS}\r")
        feed.until(lambda: states(feed.rows) == {"RUNNING"})
        [session_id] = feed.rows
        feed.until(lambda: feed.rows[session_id]["name"].startswith("stub:slow(3) hel"))
        assert feed.rows[session_id]["directory"] == str(project)
        feed.until(lambda: feed.rows[session_id]["state"] == "IDLE")
        assert feed.rows[session_id]["stateEvidence"]["source"] == "REGISTRY"
        assert feed.rows[session_id]["resume"] == {"available": False, "refusal": None}

        program.wait_for(READY)
        program.send("stub:bash(touch asked.txt)\r")
        feed.until(lambda: feed.rows[session_id]["state"] == "ASKING")
        assert feed.rows[session_id]["waitingFor"]["kind"] == "PERMISSION"
        refused = server.resume(session_id)
        assert refused["code"] == "OUTSIDE_SESSION_LIVE", refused

        [entry] = claude.registry()
        os.kill(entry["pid"], signal.SIGKILL)
        # Ten times what an owner is promised: a second.
        feed.until(lambda: feed.rows[session_id]["state"] == "ENDED", seconds=10)
        assert feed.rows[session_id]["resume"] == {"available": True, "refusal": None}
    return str(session_id)


def resume_it_and_talk(
    claude: RealClaude, server: RunningServer, session_id: str
) -> str:
    [transcript] = claude.transcripts()
    started = server.resume(session_id)
    assert started["__typename"] == "ResumeOutsideSessionPayload", started
    terminal_id = str(started["terminal"]["id"])
    assert (started["terminal"]["cols"], started["terminal"]["rows"]) == (100, 40)
    with server.attach(started["ticket"]) as client:
        client.wait_for("hello from the keyboard")
        client.wait_for(FIRST_ANSWER)
        assert FIRST_ANSWER in said(server, session_id)
        wait_for(lambda: linked(server, session_id, terminal_id), "the row is linked")
        client.type("a word through the socket\r")
        client.wait_for("Stub answer to: a word through the socket")
        wait_for(
            lambda: "Stub answer to: a word through" in transcript.read_text(),
            "the answer stands in the same transcript",
        )
    assert server.resume(session_id)["__typename"] == "OutsideSessionResumed"

    server.restart(signal.SIGKILL)
    wait_for(lambda: linked(server, session_id, terminal_id), "it is still there")
    with server.attach(server.issue_ticket(terminal_id)) as client:
        client.wait_for("Stub answer to: a word through the socket")
        client.type("after the restart\r")
        client.wait_for("Stub answer to: after the restart")
    wait_for(
        lambda: "Stub answer to: after the restart" in transcript.read_text(),
        "the answer after the restart stands in the same transcript",
    )
    assert claude.transcripts() == [transcript]
    return terminal_id


def close_it(server: RunningServer, session_id: str, terminal_id: str) -> None:
    with server.follow(FEED) as feed:
        feed.until(lambda: session_id in feed.rows)
        answer = server.close_terminal(terminal_id)
        assert answer["__typename"] == "CloseTerminalPayload", answer
        feed.until(lambda: feed.rows[session_id]["state"] == "ENDED", seconds=10)
        feed.until(lambda: feed.rows[session_id]["terminal"] is None)
        assert feed.rows[session_id]["resume"]["available"] is True
    data = server.query("{ terminals(first: 10) { nodes { id } } }")
    assert data["terminals"]["nodes"] == []


def states(rows: dict[str, dict[str, str]]) -> set[str]:
    return {row["state"] for row in rows.values()}


def said(server: RunningServer, session_id: str) -> list[str]:
    """Return what the model said in the session's transcript."""
    data = server.query(
        """query Said($id: ID!) { node(id: $id) { ... on OutsideSession {
          transcript(first: 100) { nodes { ... on MessageEntry { body { text } } } }
        } } }""",
        {"id": session_id},
    )
    nodes = data["node"]["transcript"]["nodes"]
    return [node["body"]["text"] for node in nodes if node]


def linked(server: RunningServer, session_id: str, terminal_id: str) -> bool:
    [row] = [row for row in server.rows() if row["id"] == session_id]
    terminal = row["terminal"]
    return (
        terminal is not None
        and terminal["id"] == terminal_id
        and (row["state"] == "IDLE")
    )
