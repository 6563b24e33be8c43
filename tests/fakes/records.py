"""Records for tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sidestage.ids import ProjectId, TerminalId
from sidestage.terminals.model import SandboxReport
from terminal_host.host.record_format import RecordMeta, ScreenRecord

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
META: Final = RecordMeta(
    terminal_id=TerminalId("terminal:a"),
    cols=80,
    rows=24,
    project_id=ProjectId("project:a"),
    name="build",
    title="make — 漢字",
    started_at=NOON,
    ended_at=None,
    exit_status=None,
    saved_at=NOON + timedelta(minutes=5),
    offset=5120,
    last_output_at=NOON + timedelta(minutes=5),
    last_input_at=None,
    bell_at=None,
    sandbox=SandboxReport(
        enabled=True, kind="bubblewrap", signals_confined=True, project_writable=False
    ),
)


def make_record(
    terminal_id: str = "terminal:a",
    *,
    screen: bytes = b"hello\r\n$ ",
    continuation: bytes = b"",
    **meta: Any,
) -> ScreenRecord:
    """Return a record; *meta* replaces fields of `META`."""
    changed = replace(META, terminal_id=TerminalId(terminal_id), **meta)
    return ScreenRecord(meta=changed, screen=screen, continuation=continuation)
