"""Folders that sessions name: resolved once, and whether they exist now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER_LIMIT: Final = 20_000
"""Folders remembered: as many as transcripts."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as a session recorded it."""

    real_path: str
    """Without links, as it was when first looked at; as recorded if it was absent."""
    exists: bool | None
    """None: nobody has looked yet."""


def look_at_folders(
    paths: Iterable[str], known: Mapping[str, Folder]
) -> dict[str, Folder]:
    """Return what is at *paths* now; a folder that was resolved stays so. Blocks."""
    return {path: _look(path, known.get(path)) for path in paths}


def _look(path: str, known: Folder | None) -> Folder:
    if known is not None and known.exists:
        return Folder(known.real_path, _is_folder(known.real_path))
    if not _is_folder(path):
        return Folder(known.real_path if known else path, exists=False)
    try:
        return Folder(str(Path(path).resolve(strict=True)), exists=True)
    except (OSError, RuntimeError):
        return Folder(path, exists=False)


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False
