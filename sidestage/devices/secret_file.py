"""Secrets in files of the state folder: for their owner alone, replaced as a whole."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from sidestage.errors import StateFolderUnsafe

SECRET_LIMIT_BYTES: Final = 4096
"""No secret of ours is longer; more is not read."""


def read_secret(path: Path) -> str | None:
    """Return the text in the file at *path*; None if there is none.

    Raises `StateFolderUnsafe` if the file is a link or can be read by others.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateFolderUnsafe(f"{path} cannot be read: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise StateFolderUnsafe(f"{path} can be read by others: chmod 600 it.")
        return file.read(SECRET_LIMIT_BYTES).decode("ascii", "replace").strip()


def write_secret(path: Path, text: str) -> None:
    """Put *text* into the file at *path* (0600), whole or not at all."""
    temporary = path.with_suffix(".new")
    with suppress(FileNotFoundError):
        temporary.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(text.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
