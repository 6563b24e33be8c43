"""What the desk of terminals works with."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sidestage.ids import HostId
from sidestage.projects.model import Projects
from sidestage.sessions.board import Sessions
from sidestage.terminals.launch import Launcher
from sidestage.terminals.links import SessionLinks
from sidestage.terminals.model import TerminalHost
from sidestage.terminals.store import TerminalStore
from sidestage.terminals.templates import TemplateShelf


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskParts:
    """Everything the desk works with."""

    host_id: HostId
    host: TerminalHost
    store: TerminalStore
    projects: Projects
    sessions: Sessions
    links: SessionLinks
    launcher: Launcher
    templates: TemplateShelf
    terminals_limit: int
    check_project: Callable[[str, int, int], None]
    """Raises `ProjectChanged` or `ProjectFolderMissing` for (path, device, inode)."""
    clock: Callable[[], datetime]
