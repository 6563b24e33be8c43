"""From a project and a template to what the host is asked to start."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sidestage.errors import AgentNotFound, StartFailed
from sidestage.ids import ConversationId, TerminalId
from sidestage.projects.model import Project
from sidestage.sessions.model import AgentKind
from sidestage.terminals.desk import Template
from sidestage.terminals.environment import (
    HOOK_SOCKET_INSIDE,
    child_environment,
    sandbox_environment,
)
from sidestage.terminals.model import AgentFiles, CreateTerminal, SandboxProfile
from sidestage.terminals.programs import real_folders, through_real_folder

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start, decided: where, what, how large, and which conversation goes on."""

    terminal_id: TerminalId
    project: Project
    template: Template
    directory: Path
    cols: int
    rows: int
    conversation_id: ConversationId | None = field(default=None, repr=False)
    config_dir: Path | None = None
    """The agent's state folder the conversation lives in; None for the default."""
    transcript: Path | None = None
    own_conversation_id: ConversationId | None = field(default=None, repr=False)
    """The id of a conversation that begins here: a fork's, or a fresh one's."""
    permission_mode: str | None = None
    """As the agent's option names it; None leaves it to the agent."""

    @property
    def held_conversation_id(self) -> ConversationId | None:
        """The conversation that the terminal writes, so the one it must hold."""
        return self.own_conversation_id or self.conversation_id


@dataclass(frozen=True, slots=True)
class PreparedAgent:
    """What an agent needs beside its program."""

    files: AgentFiles
    config_dir: Path | None
    """What the agent is told its state folder is; None for its default."""
    arguments: tuple[str, ...] = ()
    """What its command gets besides; anyone on the machine can read it."""


class AgentPreparer(Protocol):
    """Makes an agent's private files for one terminal, and takes them back."""

    def prepare(
        self,
        *,
        terminal_id: TerminalId,
        directory: Path,
        config_dir: Path | None,
        transcript: Path | None,
    ) -> PreparedAgent:
        """Make the private folder; blocking; raises `OSError`."""

    def finish(self, terminal_id: TerminalId) -> None:
        """Merge back what may be, and remove the private folder; blocking.

        A terminal without private files is no error.
        """

    def list_prepared(self) -> tuple[TerminalId, ...]:
        """Return the terminals that have private files; blocking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """What every start has in common."""

    home: Path
    state_dir: Path
    sandbox: bool
    environment: Mapping[str, str] = field(repr=False)
    pass_environment: tuple[str, ...]
    find_program_dirs: Callable[[], tuple[Path, ...]]
    """Looks for the folders programs need inside; blocking, asked before each start."""
    git_config: str
    """The git configuration a sandbox sees: the owner's name and e-mail only."""
    hidden: tuple[Path, ...] = ()
    """Agents' state folders, hidden also where they lie outside the home."""


class Launcher:
    """Turns a `Start` into a `CreateTerminal`."""

    def __init__(
        self, settings: LaunchSettings, preparers: Mapping[AgentKind, AgentPreparer]
    ) -> None:
        self._settings = settings
        self._preparers = preparers

    async def prepare(self, start: Start) -> CreateTerminal:
        """Make the private files and the request for the host.

        Raises `AgentNotFound`, `StartFailed`.
        """
        if not start.template.available:
            raise AgentNotFound(
                f"The program of {start.template.title} is not on the server's PATH. "
                "Install it, or start the server with a PATH that has it."
            )
        program_dirs = await asyncio.to_thread(self._settings.find_program_dirs)
        prepared = await asyncio.to_thread(self._prepare_agent, start)
        return CreateTerminal(
            terminal_id=start.terminal_id,
            argv=(
                *self._command(start.template),
                *(prepared.arguments if prepared else ()),
                *_conversation_arguments(start),
            ),
            environment=self._environment(start.terminal_id, prepared),
            directory=start.directory,
            cols=start.cols,
            rows=start.rows,
            conversation_id=start.held_conversation_id,
            sandbox=self._profile(start.project, prepared, program_dirs)
            if self._settings.sandbox
            else None,
        )

    async def finish(self, terminal_id: TerminalId) -> None:
        """Take back what the terminal's agent left in its private files.

        Files that cannot be taken back are logged and stay where they are.
        """
        for preparer in self._preparers.values():
            try:
                await asyncio.to_thread(preparer.finish, terminal_id)
            except OSError as error:
                # Neither its text nor its trace: a path there may name a conversation.
                _log.error(
                    "The files of %s could not be taken back: %s.",
                    terminal_id,
                    error.strerror,
                )

    async def list_prepared(self) -> frozenset[TerminalId]:
        """Return the terminals for which something was prepared and not taken back."""
        found: set[TerminalId] = set()
        for preparer in self._preparers.values():
            found.update(await asyncio.to_thread(preparer.list_prepared))
        return frozenset(found)

    def _command(self, template: Template) -> tuple[str, ...]:
        program, *arguments = template.argv
        if self._settings.sandbox:
            program = through_real_folder(program)
        return program, *arguments

    def _prepare_agent(self, start: Start) -> PreparedAgent | None:
        agent = start.template.agent
        preparer = None if agent is None else self._preparers.get(agent)
        if preparer is None:
            return None
        try:
            return preparer.prepare(
                terminal_id=start.terminal_id,
                directory=start.directory,
                config_dir=start.config_dir,
                transcript=start.transcript,
            )
        except OSError as error:
            raise StartFailed(
                f"The agent's files could not be prepared: {error.strerror}."
            ) from error

    def _environment(
        self, terminal_id: TerminalId, prepared: PreparedAgent | None
    ) -> dict[str, str]:
        settings = self._settings
        added = {"SIDESTAGE_TERMINAL": str(terminal_id)}
        if settings.sandbox:
            added |= sandbox_environment(git_config=settings.git_config)
            added["PATH"] = real_folders(settings.environment.get("PATH", ""))
        if prepared is not None:
            added["SIDESTAGE_HOOK_SOCKET"] = str(self._hook_socket(prepared))
            if settings.sandbox:
                # What is installed is read-only there; an attempt would only complain.
                added["DISABLE_AUTOUPDATER"] = "1"
        if prepared is not None and prepared.config_dir is not None:
            added["CLAUDE_CONFIG_DIR"] = str(prepared.config_dir)
        return child_environment(
            settings.environment, passed=settings.pass_environment, added=added
        )

    def _hook_socket(self, prepared: PreparedAgent) -> Path:
        if self._settings.sandbox:
            return HOOK_SOCKET_INSIDE
        return prepared.files.private_dir / "hook" / "hook.sock"

    def _profile(
        self,
        project: Project,
        prepared: PreparedAgent | None,
        program_dirs: tuple[Path, ...],
    ) -> SandboxProfile:
        settings = self._settings
        return SandboxProfile(
            project=Path(project.path),
            project_read_only=project.read_only,
            home=settings.home,
            state_dir=settings.state_dir,
            program_dirs=program_dirs,
            agent=None if prepared is None else prepared.files,
            git_config=settings.git_config,
            hidden=settings.hidden,
        )


def _conversation_arguments(start: Start) -> tuple[str, ...]:
    """Return the agent's options. Never a prompt: arguments show in `ps`."""
    resume = start.conversation_id and ("--resume", start.conversation_id)
    own = start.own_conversation_id and ("--session-id", start.own_conversation_id)
    fork = ("--fork-session",) if resume and own else ()
    mode = start.permission_mode and ("--permission-mode", start.permission_mode)
    return (*(resume or ()), *fork, *(own or ()), *(mode or ()))
