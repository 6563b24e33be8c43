"""Events that hooks wrote down while no server was there (docs/hook-protocol.md)."""

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.hook_intake import HookIntake
from sidestage.agents.claude_code.records import parse_object
from sidestage.agents.regular_files import read_regular

FILE_LIMIT_BYTES: Final = 64 * 1024 + 128
"""What the hook program writes at most: an event, and the line before it."""
FILES_LIMIT: Final = 1_024
"""Read at once: twice what the hook program leaves there."""

_NAME: Final = re.compile(r"[0-9]{20}-[0-9]{10}-[0-9a-f]{8}\.event")
"""The time in nanoseconds comes first, so that names sort by it."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """One event as it was written down."""

    at: datetime
    payload: bytes


def parse_spooled(data: bytes) -> Spooled | None:
    """Return the event of a spool's file; None if it is torn."""
    line, _, payload = data.partition(b"\n")
    header = parse_object(line)
    if header is None or header.get("v") != 1 or not payload:
        return None
    milliseconds = header.get("at")
    if not isinstance(milliseconds, int):
        return None
    try:
        return Spooled(datetime.fromtimestamp(milliseconds / 1000, UTC), payload)
    except (ValueError, OverflowError, OSError):
        return None


async def replay(folder: Path, intake: HookIntake) -> None:
    """Apply every event of the spool in order, each once; torn files are counted.

    A file goes once its event was delivered, so what a crash interrupts comes again.
    """
    for path in await asyncio.to_thread(_list_files, folder):
        spooled = await asyncio.to_thread(_read, path)
        if spooled is None:
            intake.counts["spool_torn"] += 1
        else:
            delivered = intake.take_spooled(spooled.payload, spooled.at)
            if delivered is not None:
                await delivered
        await asyncio.to_thread(path.unlink, missing_ok=True)


def _list_files(folder: Path) -> list[Path]:
    try:
        names = sorted(it.name for it in folder.iterdir() if _NAME.fullmatch(it.name))
    except OSError:
        return []
    return [folder / name for name in names[:FILES_LIMIT]]


def _read(path: Path) -> Spooled | None:
    try:
        return parse_spooled(read_regular(path, limit_bytes=FILE_LIMIT_BYTES))
    except OSError:
        return None
