"""The private files of one Claude Code terminal: made before it, merged back after it.

`<state>/terminals/<id>/` holds what its sandbox gets instead of the owner's own:
`config/` stands in for `~/.claude` (whatever a newer CLI adds there is gone with the
terminal, so it is no way out), `sessions/` for its registry, `claude.json` for
`.claude.json`, and `hook/` for its hook socket. `origin.json` remembers, for a server
that was restarted meanwhile, where to merge back to; the sandbox does not see it.
"""

import json
import logging
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.config_file import (
    patch_config,
    read_config,
    read_object,
    replace_file,
)
from sidestage.agents.claude_code.folder_names import encode_folder
from sidestage.agents.claude_code.login import LOGIN_NAME, LoginPair
from sidestage.agents.claude_code.private_config import (
    make_private_config,
    merge_counters,
)
from sidestage.agents.claude_code.private_removal import PrivateRemoval
from sidestage.ids import TerminalId
from sidestage.terminals.launch import PreparedAgent
from sidestage.terminals.model import AgentFiles

_log = logging.getLogger(__name__)

_FOREIGN_LOGIN: Final = (
    "what was written inside is no refresh of yours, so yours was kept"
)

_READ_ONLY: Final = (
    "settings.json",
    "settings.local.json",
    "CLAUDE.md",
    "keybindings.json",
    "commands",
    "agents",
    "skills",
    "plugins",
    "output-styles",
    "hooks",
    "rules",
)
"""Read, and later run, by every session of the owner: shown, never writable."""

_HOOK_SETTINGS: Final = "settings.json"

ORIGIN_LIMIT_BYTES: Final = 64 * 1024
"""Some paths, each of at most 4,096 bytes."""
PRIVATE_CONFIG_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""A copy starts with some kilobytes. The sandbox writes it, and to parse 64 MB of
nonsense would take a gigabyte of memory."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a terminal's private files came from."""

    config_dir: Path
    config_file: Path
    projects: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(
            {
                "config_dir": str(self.config_dir),
                "config_file": str(self.config_file),
                "projects": self.projects,
            }
        )


@dataclass(frozen=True, slots=True)
class TerminalHooks:
    """How the agent of a terminal gets our hooks: by a settings file of its own."""

    program: Path
    """What it runs as a hook."""
    settings: str
    """The settings file's text; the CLI adds its hooks to those of other files."""
    folder_inside: Path | None
    """Where a sandbox sees the private `hook/`; None without a sandbox."""


class ClaudePrivateFiles:
    """Makes and merges back private files (`sidestage.terminals.launch.AgentPreparer`).

    *home* is the owner's. Its methods block on files.
    """

    def __init__(
        self, *, state_dir: Path, home: Path, hooks: TerminalHooks | None = None
    ) -> None:
        self.terminals_dir = state_dir.resolve() / "terminals"
        self.removal = PrivateRemoval(state_dir.resolve() / "terminals-ended")
        self._home = home.resolve()
        self._hooks = hooks
        # Logins are followed from a watcher's thread and from starts and ends.
        self._merging = threading.Lock()
        self._told: set[TerminalId] = set()

    def prepare(
        self,
        *,
        terminal_id: TerminalId,
        directory: Path,
        config_dir: Path | None,
        transcript: Path | None,
    ) -> PreparedAgent:
        """Make the private folder of a terminal that starts in *directory*.

        *config_dir* None means `~/.claude`. *transcript* is the conversation to resume:
        the CLI appends to it wherever it lies. Raises `OSError`, also when the terminal
        has its folder already: it may be running.
        """
        origin = self._find_origin(directory, config_dir)
        private = self.terminals_dir / terminal_id
        private.mkdir(mode=0o700, parents=True)
        try:
            with self._merging:
                _fill(private, origin)
            arguments = self._give_hooks(private / "hook")
            files = self._agent_files(private, origin, directory, transcript)
        except OSError:
            shutil.rmtree(private)
            raise
        is_default = origin.config_dir == self._home / ".claude"
        config = None if is_default else origin.config_dir
        return PreparedAgent(files, config, arguments)

    def _give_hooks(self, folder: Path) -> tuple[str, ...]:
        """Write the settings that hold our hooks; return how the agent is told."""
        if self._hooks is None:
            return ()
        (folder / _HOOK_SETTINGS).write_text(self._hooks.settings)
        seen = self._hooks.folder_inside or folder
        return ("--settings", str(seen / _HOOK_SETTINGS))

    def finish(self, terminal_id: TerminalId) -> None:
        """Merge back what may be, then put the private folder out of the way.

        Only after the terminal's last process ended. No private folder is no error.
        *removal* has to run for the folder to go. Raises `OSError`.
        """
        private = self.terminals_dir / terminal_id
        with self._merging:
            origin = _read_origin(private)
            if origin is not None:
                self._merge_back(terminal_id, private, origin)
            self._told.discard(terminal_id)
            if private.is_dir():
                self.removal.take(private)

    def _merge_back(
        self, terminal_id: TerminalId, private: Path, origin: _Origin
    ) -> None:
        """Take login and counters back; what fails is told and given up.

        What a program left inside must not keep the private folder from going.
        """
        self._follow_login(terminal_id, private, origin)
        try:
            _merge_config(private, origin)
        except OSError as error:
            _log.warning("counters of %s are lost: %s", terminal_id, error.strerror)

    def _follow_login(
        self, terminal_id: TerminalId, private: Path, origin: _Origin
    ) -> None:
        """Bring one terminal's login in step; tell what hinders it."""
        try:
            if not _login_pair(private, origin).follow():
                self._tell_once(terminal_id, _FOREIGN_LOGIN)
        except OSError as error:
            self._tell_once(
                terminal_id, f"it was not brought in step: {error.strerror}"
            )

    def _tell_once(self, terminal_id: TerminalId, trouble: str) -> None:
        """Log a login's *trouble*, the first of its terminal only.

        A program inside could fill the log with it.
        """
        if terminal_id not in self._told:
            self._told.add(terminal_id)
            _log.warning("The login of %s: %s.", terminal_id, trouble)

    def list_prepared(self) -> tuple[TerminalId, ...]:
        """Return the terminals that have a private folder, finished or half made."""
        folders = self.terminals_dir.glob("*/")
        return tuple(TerminalId(folder.name) for folder in folders)

    def registry_of(self, terminal_id: TerminalId) -> Path:
        """Return the folder in which the terminal's agent registers itself."""
        return self.terminals_dir / terminal_id / "sessions"

    def config_dir_of(self, terminal_id: TerminalId) -> Path | None:
        """Return the agent's state folder behind a terminal's private files."""
        origin = _read_origin(self.terminals_dir / terminal_id)
        return None if origin is None else origin.config_dir

    def sync_logins(self) -> None:
        """Bring each running terminal's login and the owner's in step.

        A terminal that hinders it is told once, and keeps no other from its turn.
        """
        with self._merging:
            for private in sorted(self.terminals_dir.glob("*")):
                if (origin := _read_origin(private)) is not None:
                    self._follow_login(TerminalId(private.name), private, origin)

    def _find_origin(self, directory: Path, config_dir: Path | None) -> _Origin:
        default = self._home / ".claude"
        chosen = default
        if config_dir is not None:
            chosen = config_dir.parent.resolve() / config_dir.name
        file = self._home if chosen == default else chosen
        legacy = chosen / ".config.json"
        return _Origin(
            config_dir=chosen,
            config_file=legacy if legacy.is_file() else file / ".claude.json",
            projects=tuple(map(str, dict.fromkeys(_config_keys(directory)))),
        )

    def _agent_files(
        self,
        private: Path,
        origin: _Origin,
        directory: Path,
        transcript: Path | None,
    ) -> AgentFiles:
        projects = origin.config_dir / "projects"
        own = projects / encode_folder(directory)
        transcripts = _transcripts_of(transcript, projects) or own
        # A fork from another folder is written below its own folder's name.
        further = () if own == transcripts else (own,)
        for folder in (transcripts, *further):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        paths = (origin.config_dir / name for name in _READ_ONLY)
        return AgentFiles(
            config_dir=origin.config_dir,
            transcripts=transcripts,
            private_dir=private,
            config_file=origin.config_file,
            read_only=tuple(path for path in paths if path.exists()),
            read_write=further,
            hook_program=self._hooks.program if self._hooks else None,
        )


def _transcripts_of(transcript: Path | None, projects: Path) -> Path | None:
    """Return the folder of *transcript*, named below *projects* as the CLI does."""
    if transcript is None or transcript.parent.parent.resolve() != projects.resolve():
        return None
    return projects / transcript.parent.name


def _config_keys(directory: Path) -> Iterator[Path]:
    """Yield the folders whose entries of `.claude.json` count for *directory*.

    The CLI keeps one entry a repository (measured), outside of one an entry a folder.
    """
    yield directory
    for folder in (directory, *directory.parents):
        if (folder / ".git").exists():
            yield folder
            return


def _fill(private: Path, origin: _Origin) -> None:
    """Put into *private* what its terminal starts with."""
    for name in ("config", "sessions", "hook"):
        (private / name).mkdir(mode=0o700)
    (private / "origin.json").write_text(origin.to_json())
    config = make_private_config(read_config(origin.config_file), origin.projects)
    data = json.dumps(config, indent=2).encode()
    replace_file(private / "claude.json", data, mode=0o600)
    _login_pair(private, origin).follow()


def _login_pair(private: Path, origin: _Origin) -> LoginPair:
    return LoginPair(
        inside=private / "config" / LOGIN_NAME,
        outside=origin.config_dir / LOGIN_NAME,
        agreed=private / "login.sha256",
    )


def _read_origin(private: Path) -> _Origin | None:
    """Return where *private* came from; None if it was never finished making."""
    try:
        values = read_object(private / "origin.json", limit_bytes=ORIGIN_LIMIT_BYTES)
        return _Origin(
            config_dir=Path(values["config_dir"]),
            config_file=Path(values["config_file"]),
            projects=tuple(values["projects"]),
        )
    except (KeyError, TypeError):
        return None


def _merge_config(private: Path, origin: _Origin) -> None:
    """Put the sandbox's counters into the owner's `.claude.json`."""
    copy = private / "claude.json"
    inside = read_object(copy, limit_bytes=PRIVATE_CONFIG_LIMIT_BYTES)
    patch_config(
        origin.config_file, lambda real: merge_counters(real, inside, origin.projects)
    )
