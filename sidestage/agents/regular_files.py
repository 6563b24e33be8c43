"""Opening files that a sandboxed program may have put in place.

It could leave a pipe, which blocks whoever opens it, or a link to a file that it may
not read itself. Only regular files are opened, and no link is followed.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file for reading, unbuffered. Raises `OSError` for all else."""
    descriptor = os.open(
        path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return open(descriptor, "rb", buffering=0)  # noqa: PTH123 a descriptor, no path


def read_regular(path: str | Path, *, limit_bytes: int) -> bytes:
    """Return a regular file's content.

    Raises `OSError` for all else, and for content over *limit_bytes*.
    """
    with open_regular(path) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data


def stat_regular(path: str | Path) -> os.stat_result | None:
    """Return a regular file's status; None for anything else, links included."""
    try:
        status = Path(path).lstat()
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None
