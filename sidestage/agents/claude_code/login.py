"""Keeps the CLI's login in step between a sandbox and the outside.

The sandbox has a copy of `.credentials.json`, not a bind of it. Measured (2.1.328): the
CLI refreshes the file by rename. Over a bound file the rename fails (EBUSY), and when
an *outside* CLI renames, a bound file keeps the old inode: the sandbox would go on with
a refresh token that is spent, and what it writes then is lost. Two copies that follow
each other have neither fault. The newer change wins.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.config_file import parse_config, replace_file

LOGIN_NAME: Final = ".credentials.json"
LOGIN_LIMIT_BYTES: Final = 64 * 1024
"""A login is about 1 kB. The sandbox writes this file, so its size is not trusted."""
LOGIN_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class _Login:
    data: bytes
    modified_ns: int

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class LoginPair:
    """The two copies of one login, and the file that remembers their last agreement."""

    inside: Path
    outside: Path
    agreed: Path

    def follow(self) -> None:
        """Bring the older copy up to the newer change; raises `OSError`.

        A copy that vanished (a logout) or holds no JSON object changes nothing.
        """
        # The program inside can put a link here to make us read another file.
        inside = _read_login(self.inside, follow_links=False)
        outside = _read_login(self.outside, follow_links=True)
        agreed = self.agreed.read_text() if self.agreed.exists() else ""
        inside_changed = inside is not None and inside.digest != agreed
        outside_changed = outside is not None and outside.digest != agreed
        if inside_changed and outside_changed and inside and outside:
            inside_changed = inside.modified_ns > outside.modified_ns
        if inside_changed and inside:
            replace_file(self.outside.resolve(), inside.data, mode=LOGIN_MODE)
            self._agree(inside)
        elif outside_changed and outside:
            replace_file(self.inside, outside.data, mode=LOGIN_MODE)
            self._agree(outside)

    def _agree(self, login: _Login) -> None:
        replace_file(self.agreed, login.digest.encode(), mode=LOGIN_MODE)


def _read_login(path: Path, *, follow_links: bool) -> _Login | None:
    """Return the login at *path*; None if there is no regular file with an object."""
    # Never wait for a pipe's other end.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as source:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LOGIN_LIMIT_BYTES:
            return None
        data = source.read(LOGIN_LIMIT_BYTES)
    return _Login(data, status.st_mtime_ns) if parse_config(data) else None
