"""Puts our hooks into the CLI's `settings.json` and takes them out (`HookSetup`).

What a file held before is kept in `<state>/hooks/`, so that taking them out gives its
owner the very bytes back as long as nobody changed the file meanwhile.
"""

import asyncio
import base64
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.config_file import read_object, replace_file
from sidestage.agents.claude_code.hook_settings import (
    HookCommand,
    add_ours,
    find_ours,
    is_current,
    remove_ours,
)
from sidestage.agents.claude_code.json_text import NotJson
from sidestage.agents.regular_files import read_regular
from sidestage.audit import AuditLog, AuditOutcome, AuditRecord
from sidestage.devices.model import Principal
from sidestage.errors import HooksNotWritten, HooksUnreadable, InvalidInput
from sidestage.sessions.hook_setup import HookState, HookStatus

SETTINGS_NAME: Final = "settings.json"
SETTINGS_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Real ones have some kilobytes."""
_KEPT_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""A settings file in base64, and a digest."""
_EMPTY: Final = "{}\n"


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a settings file held before we changed it, and what we made of it."""

    before: bytes | None
    """None: there was no file."""
    written_sha256: str

    def to_json(self) -> bytes:
        before = None if self.before is None else base64.b64encode(self.before).decode()
        return json.dumps({"before": before, "written": self.written_sha256}).encode()


class HookInstaller:
    """`sidestage.sessions.hook_setup.HookSetup`, for Claude Code's config dirs."""

    def __init__(
        self,
        *,
        config_dirs: tuple[Path, ...],
        kept_dir: Path,
        command: HookCommand,
        audit: AuditLog,
    ) -> None:
        self._files = tuple(folder / SETTINGS_NAME for folder in config_dirs)
        self._kept_dir = kept_dir
        self._command = command
        self._audit = audit
        self._changing = asyncio.Lock()

    async def status(self) -> tuple[HookStatus, ...]:
        """Return how our hooks stand in each settings file."""
        return await asyncio.to_thread(self.look)

    def look(self) -> tuple[HookStatus, ...]:
        """Return how our hooks stand in each settings file; blocks."""
        return tuple(look_at_hooks(path, self._command) for path in self._files)

    async def install(
        self, *, only: str | None = None, actor: Principal
    ) -> tuple[HookStatus, ...]:
        """Put our hooks into settings files (see `HookSetup.install`)."""
        return await self._change("hooks.install", self._install_one, only, actor)

    async def uninstall(
        self, *, only: str | None = None, actor: Principal
    ) -> tuple[HookStatus, ...]:
        """Take our hooks out of settings files (see `HookSetup.uninstall`)."""
        return await self._change("hooks.uninstall", self._uninstall_one, only, actor)

    async def _change(
        self,
        action: str,
        change: Callable[[Path], None],
        only: str | None,
        actor: Principal,
    ) -> tuple[HookStatus, ...]:
        files = tuple(it for it in self._files if only in (None, str(it)))
        if not files:
            raise InvalidInput("That is no settings file of an agent that is known.")
        async with self._changing:
            await asyncio.to_thread(_change_all, files, change)
            await self._audit.write(
                AuditRecord(
                    actor=actor.actor,
                    address=actor.address,
                    action=action,
                    target_id=None,
                    outcome=AuditOutcome.DONE,
                )
            )
        return await self.status()

    def _install_one(self, path: Path) -> None:
        if not path.parent.is_dir():
            return  # this account has no state folder: there is no agent to hook
        data = _read(path)
        if data is not None and is_current(data.decode(), self._command):
            return
        before = self._without(path, data)
        text = add_ours(_EMPTY if before is None else before.decode(), self._command)
        written = text.encode()
        self._keep(path, _Kept(before, hashlib.sha256(written).hexdigest()))
        _write(path, written, was=data)

    def _uninstall_one(self, path: Path) -> None:
        data = _read(path)
        if data is None:
            return
        before = self._without(path, data)
        if before is None:
            path.resolve().unlink()
        elif before != data:
            _write(path, before, was=data)
        self._kept_file(path).unlink(missing_ok=True)

    def _without(self, path: Path, data: bytes | None) -> bytes | None:
        """Return what the file would hold without us; None if it would not exist."""
        if data is None:
            return None
        kept = self._find_kept(path)
        if kept and kept.written_sha256 == hashlib.sha256(data).hexdigest():
            return kept.before
        text = data.decode()
        return remove_ours(text).encode() if find_ours(text) else data

    def _keep(self, path: Path, kept: _Kept) -> None:
        self._kept_dir.mkdir(mode=0o700, exist_ok=True)
        replace_file(self._kept_file(path), kept.to_json(), mode=0o600)

    def _find_kept(self, path: Path) -> _Kept | None:
        values = read_object(self._kept_file(path), limit_bytes=_KEPT_LIMIT_BYTES)
        try:
            before = values["before"]
            return _Kept(
                None if before is None else base64.b64decode(before, validate=True),
                str(values["written"]),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def _kept_file(self, path: Path) -> Path:
        name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
        return self._kept_dir / f"{name}.json"


def _change_all(files: tuple[Path, ...], change: Callable[[Path], None]) -> None:
    for path in files:
        _check_readable(path)  # before the first is written
    for path in files:
        try:
            change(path)
        except OSError as error:
            raise HooksNotWritten(
                f"{path} cannot be changed: {error.strerror}."
            ) from error


def look_at_hooks(path: Path, command: HookCommand) -> HookStatus:
    """Return how our hooks stand in the settings file at *path*; blocks."""
    try:
        data = _check_readable(path)
    except HooksUnreadable as error:
        return HookStatus(str(path), HookState.UNREADABLE, str(error))
    text = _EMPTY if data is None else data.decode()
    if not find_ours(text):
        return HookStatus(str(path), HookState.ABSENT)
    if is_current(text, command):
        return HookStatus(str(path), HookState.INSTALLED)
    note = "They are not those of this server. Install them again."
    return HookStatus(str(path), HookState.OUTDATED, note)


def _check_readable(path: Path) -> bytes | None:
    """Return what the file holds; raises `HooksUnreadable` if it is no settings."""
    try:
        data = _read(path)
        if data is not None:
            find_ours(data.decode())
    except OSError as error:
        raise HooksUnreadable(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise HooksUnreadable(f"{path}, line {line}: this is no UTF-8.") from error
    except NotJson as error:
        raise HooksUnreadable(f"{path}, {error}.") from error
    return data


def _read(path: Path) -> bytes | None:
    """Return what the file holds, links followed; None if there is none."""
    try:
        return read_regular(path.resolve(), limit_bytes=SETTINGS_LIMIT_BYTES)
    except FileNotFoundError:
        return None
    except RuntimeError as error:  # a loop of links, up to Python 3.12
        raise OSError(40, os.strerror(40)) from error


def _write(path: Path, data: bytes, *, was: bytes | None) -> None:
    """Put *data* where the file really lies; raises `OSError`.

    Also if it changed since it was read: what a person saves meanwhile stays.
    """
    real = path.resolve()
    mode = 0o600 if was is None else stat.S_IMODE(real.stat().st_mode)
    if _read(path) != was:
        raise OSError(0, "it was changed at the same moment; try again")
    replace_file(real, data, mode=mode)
