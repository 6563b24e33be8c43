"""Terminals of an owner who switched the sandbox off, by an explicit setting."""

import signal
from pathlib import Path

from tests.e2e.agents.scripted_claude import ScriptedClaude
from tests.e2e.real_claude import READY
from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for


def test_a_bare_terminal_resumes_is_linked_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    """Its agent registers where all do, and was taken for somebody else's."""
    claude = ScriptedClaude(tmp_path)
    project = claude.make_project("project")
    with claude.start(directory=project) as program:
        program.wait_for(READY)
        program.send("hello\r")
        wait_for(claude.transcripts, "a transcript")
        program.send("/exit\r")
        program.wait_end()
    server = RunningServer(environment=claude.environment(), arguments=["--no-sandbox"])
    with server:
        server.register_project(project)
        [row] = server.rows()
        started = server.resume(row["id"])
        assert started["__typename"] == "ResumeOutsideSessionPayload", started
        terminal_id = started["terminal"]["id"]

        def linked() -> bool:
            terminal = server.rows()[0]["terminal"]
            return terminal is not None and terminal["id"] == terminal_id

        wait_for(linked, "the row is linked")
        server.restart(signal.SIGKILL)
        wait_for(linked, "the row is linked again")
        assert server.rows()[0]["conflict"] is None
        assert server.close_terminal(terminal_id)["__typename"] == (
            "CloseTerminalPayload"
        )
        wait_for(lambda: server.rows()[0]["state"] == "ENDED", "the session ended")
