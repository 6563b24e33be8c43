"""Values of the domain for tests, with what a test does not care about filled in."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sidestage.ids import (
    ConversationId,
    HostId,
    ProjectId,
    SessionId,
    TemplateId,
    TerminalId,
)
from sidestage.projects.model import Project
from sidestage.sessions.model import (
    AgentKind,
    EvidenceSource,
    MessagePreview,
    MessageRole,
    Session,
    SessionOrigin,
    SessionState,
    StateEvidence,
    TokenUsage,
)
from sidestage.sessions.transcript import EntryKind, TranscriptEntry
from sidestage.terminals.desk import Template
from sidestage.terminals.model import SandboxReport, Terminal, TerminalState

HOST: Final = HostId("host:aa")
START: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECRET_CONVERSATION: Final = ConversationId("0c0ffee0-dead-4bee-8f00-000000000001")
"""A canary: it must not show anywhere."""


def session_id(number: int) -> SessionId:
    """Return the row id of the session with that number."""
    return SessionId(f"outside:{number:032x}")


def a_session(number: int = 1, **changes: Any) -> Session:
    """Return a session; the higher its number, the later it started."""
    values: dict[str, Any] = {
        "id": session_id(number),
        "agent": AgentKind.CLAUDE_CODE,
        "host_id": HOST,
        "name": f"Session {number}",
        "directory": "/home/ada/project",
        "directory_exists": True,
        "current_directory": "/home/ada/project/src",
        "project_id": ProjectId("project:1"),
        "state": SessionState.IDLE,
        "state_since": START,
        "state_evidence": StateEvidence(EvidenceSource.REGISTRY, START),
        "waiting_for": None,
        "terminal_id": None,
        "started_at": START + timedelta(seconds=number),
        "last_activity_at": START + timedelta(minutes=number),
        "ended_at": None,
        "git_branch": "main",
        "model": "claude-opus",
        "permission_mode": "default",
        "agent_version": "2.1.328",
        "usage": TokenUsage(1, 2, 3, 3_000_000_000),
        "last_message": MessagePreview(MessageRole.ASSISTANT, "Last words.", START),
        "conflict": None,
        "continued_from_id": None,
        "handed_off_at": None,
        "has_prompt": True,
        "origin": SessionOrigin(
            conversation_id=SECRET_CONVERSATION,
            config_dir=Path("/home/ada/.claude"),
            transcript=Path(f"/home/ada/.claude/{SECRET_CONVERSATION}.jsonl"),
            process=None,
        ),
    }
    return Session(**{**values, **changes})


def a_project(number: int = 1, **changes: Any) -> Project:
    """Return a project."""
    values: dict[str, Any] = {
        "id": ProjectId(f"project:{number}"),
        "host_id": HOST,
        "name": f"Project {number}",
        "path": f"/home/ada/project{number}",
        "device": 1,
        "inode": number,
        "read_only": False,
        "templates": None,
        "created_at": START,
    }
    return Project(**{**values, **changes})


def a_terminal(number: int = 1, **changes: Any) -> Terminal:
    """Return a terminal that runs."""
    values: dict[str, Any] = {
        "id": TerminalId(f"terminal:{number}"),
        "host_id": HOST,
        "name": f"Terminal {number}",
        "template": TemplateId("template:shell"),
        "project_id": ProjectId("project:1"),
        "directory": "/home/ada/project",
        "state": TerminalState.RUNNING,
        "cols": 80,
        "rows": 24,
        "title": None,
        "exit_status": None,
        "started_at": START + timedelta(seconds=number),
        "ended_at": None,
        "last_output_at": None,
        "last_input_at": None,
        "bell_at": None,
        "session_id": None,
        "read_only": False,
        "sandbox": SandboxReport(
            enabled=True,
            kind="bubblewrap",
            signals_confined=True,
            project_writable=True,
        ),
        "attached_clients": 0,
    }
    return Terminal(**{**values, **changes})


def a_template(name: str = "shell", **changes: Any) -> Template:
    """Return a template."""
    values: dict[str, Any] = {
        "id": TemplateId(f"template:{name}"),
        "title": name.title(),
        "description": f"Runs {name}.",
        "agent": None,
        "available": True,
        "argv": (name,),
    }
    return Template(**{**values, **changes})


def an_entry(number: int, kind: EntryKind = EntryKind.MESSAGE) -> TranscriptEntry:
    """Return an entry; the higher its number, the later it comes."""
    return TranscriptEntry(
        id=f"entry:{number:08}:0",
        order=f"{number:012}",
        kind=kind,
        at=START + timedelta(seconds=number),
        text=f"Entry {number}",
        truncated=False,
        model="claude-opus" if kind is EntryKind.MESSAGE else None,
    )
