"""The state folder: ours alone, with its secrets and its lock."""

import fcntl
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sidestage.errors import StateFolderUnsafe

SOCKET_PATH_LIMIT_BYTES: Final = 107
"""`sun_path` of a Unix socket's address, less its final zero (unix(7))."""
MACHINE_SECRET_BYTES: Final = 32
_LONGEST_SOCKET: Final = "control.sock"


def prepare_state_folder(folder: Path) -> None:
    """Make *folder* (0700) or see that it is ours alone.

    Raises `StateFolderUnsafe` with what to do about it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise StateFolderUnsafe(
            f"The state folder {folder} cannot be made: {error.strerror}. "
            "Name another with --state-dir."
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        raise StateFolderUnsafe(f"{folder} is not a folder.")
    if status.st_uid != os.geteuid():
        raise StateFolderUnsafe(
            f"The state folder {folder} belongs to another user. "
            "Name another with --state-dir."
        )
    if status.st_mode & 0o077:
        folder.chmod(0o700)
    check_socket_path(folder / _LONGEST_SOCKET)


def check_socket_path(path: Path) -> None:
    """Raise `StateFolderUnsafe` if a Unix socket cannot have this path."""
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_LIMIT_BYTES:
        raise StateFolderUnsafe(
            f"The path of the socket {path} has {length} bytes, more than the "
            f"{SOCKET_PATH_LIMIT_BYTES} a Unix socket may have. "
            "Name a shorter state folder with --state-dir."
        )


def read_machine_secret(folder: Path) -> bytes:
    """Return the machine's secret, made at the first call. Row ids depend on it."""
    path = folder / "machine-secret"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    temporary = folder / f".machine-secret.{secrets.token_hex(8)}"
    if not path.exists():
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(secrets.token_bytes(MACHINE_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, not a rename: of two first starts, one secret wins.
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    secret = path.read_bytes()
    if len(secret) != MACHINE_SECRET_BYTES:
        raise StateFolderUnsafe(
            f"{path} is damaged. Remove it: every session then gets a new id."
        )
    return secret


@contextmanager
def lock_state_folder(folder: Path) -> Generator[None]:
    """Hold the folder for one server until the block ends.

    Raises `StateFolderUnsafe` if another one has it.
    """
    descriptor = os.open(
        folder / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateFolderUnsafe(
                f"Another Sidestage server runs on {folder}. Stop it, or name another "
                "folder with --state-dir."
            ) from None
        yield
    finally:
        os.close(descriptor)
