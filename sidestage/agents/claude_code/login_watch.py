"""Keeps the logins of running terminals in step with the owner's, as files change."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from watchfiles import Change, awatch

from sidestage.agents.claude_code.login import LOGIN_NAME
from sidestage.agents.claude_code.private_files import ClaudePrivateFiles

_log = logging.getLogger(__name__)

SETTLE_MILLISECONDS: Final = 200
"""A refresh writes a file beside the login and renames it: one look for both."""


async def watch_logins(files: ClaudePrivateFiles, config_dirs: Sequence[Path]) -> None:
    """Bring logins in step whenever one changes, until cancelled.

    *config_dirs* are the state folders in use (`~/.claude`, further accounts). Looks
    once at the start, for what changed while nobody watched.
    """
    files.terminals_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    outside = [folder for folder in config_dirs if folder.is_dir()]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_follow(files, [files.terminals_dir], deep=True))
        if outside:
            # Not deep: every transcript lies below, and discovery watches those.
            tasks.create_task(_follow(files, outside, deep=False))
        tasks.create_task(_sync(files))


async def _follow(
    files: ClaudePrivateFiles, folders: Sequence[Path], *, deep: bool
) -> None:
    changes = awatch(
        *folders,
        watch_filter=_is_login,
        recursive=deep,
        debounce=SETTLE_MILLISECONDS,
    )
    async for _ in changes:
        await _sync(files)


def _is_login(_: Change, path: str) -> bool:
    return path.endswith("/" + LOGIN_NAME)


async def _sync(files: ClaudePrivateFiles) -> None:
    try:
        await asyncio.to_thread(files.sync_logins)
    except OSError as error:
        # A full disk or a terminal that ended just now; the next change tries again.
        _log.warning("logins were not brought in step: %s", error.strerror)
