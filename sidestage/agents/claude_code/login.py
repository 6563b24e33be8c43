"""Keeps the CLI's login in step between a sandbox and the outside.

The sandbox has a copy of `.credentials.json`, not a bind of it. Measured (2.1.328): the
CLI refreshes the file by rename. Over a bound file the rename fails (EBUSY), and when
an *outside* CLI renames, a bound file keeps the old inode: the sandbox would go on with
a refresh token that is spent, and what it writes then is lost. Two copies that follow
each other have neither fault. The newer change wins.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.config_file import parse_config, replace_file
from sidestage.agents.regular_files import open_regular, read_regular

LOGIN_NAME: Final = ".credentials.json"
LOGIN_LIMIT_BYTES: Final = 64 * 1024
"""A login is about 1 kB. The sandbox writes this file, so its size is not trusted."""
DIGEST_LIMIT_BYTES: Final = 256
"""Of the file that holds the digest, 64 characters."""
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
        inside = _read_login(self.inside)
        target = Path(os.path.realpath(self.outside))
        outside = _read_login(target)
        agreed = _read_digest(self.agreed)
        inside_changed = inside is not None and inside.digest != agreed
        outside_changed = outside is not None and outside.digest != agreed
        if inside_changed and outside_changed and inside and outside:
            inside_changed = inside.modified_ns > outside.modified_ns
        if inside_changed and inside:
            replace_file(target, inside.data, mode=LOGIN_MODE)
            self._agree(inside)
        elif outside_changed and outside:
            replace_file(self.inside, outside.data, mode=LOGIN_MODE)
            self._agree(outside)

    def _agree(self, login: _Login) -> None:
        replace_file(self.agreed, login.digest.encode(), mode=LOGIN_MODE)


def _read_login(path: Path) -> _Login | None:
    """Return the login at *path*; None if there is no regular file with an object."""
    try:
        with open_regular(path) as source:
            modified_ns = os.fstat(source.fileno()).st_mtime_ns
            data = source.read(LOGIN_LIMIT_BYTES + 1)
    except OSError:
        return None
    if len(data) > LOGIN_LIMIT_BYTES or not parse_config(data):
        return None
    return _Login(data, modified_ns)


def _read_digest(path: Path) -> str:
    """Return the digest of what both sides last agreed on; "" if they never did."""
    try:
        data = read_regular(path, limit_bytes=DIGEST_LIMIT_BYTES)
    except OSError:
        return ""
    return data.decode("ascii", "replace")
