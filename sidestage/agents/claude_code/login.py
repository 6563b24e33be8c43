"""Keeps the CLI's login in step between a sandbox and the outside.

The sandbox has a copy of `.credentials.json`, not a bind of it. Measured (2.1.328): the
CLI refreshes the file by rename. Over a bound file the rename fails (EBUSY), and when
an *outside* CLI renames, a bound file keeps the old inode: the sandbox would go on with
a refresh token that is spent, and what it writes then is lost. Two copies that follow
each other have neither fault. What the owner changes goes in; what is changed inside
comes out only if it is a refresh of the owner's login (`login_refresh`).
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.agents.claude_code.config_file import parse_config, replace_file
from sidestage.agents.claude_code.login_refresh import (
    Json,
    first_login,
    refresh_login,
)
from sidestage.agents.regular_files import read_regular

LOGIN_NAME: Final = ".credentials.json"
LOGIN_LIMIT_BYTES: Final = 64 * 1024
"""A login is about 1 kB. The sandbox writes this file, so its size is not trusted."""
DIGEST_LIMIT_BYTES: Final = 256
"""Of the file that holds the two digests, 64 characters each."""
LOGIN_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class _Login:
    data: bytes
    values: Json

    @property
    def digest(self) -> str:
        """Tells whether a copy changed."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class LoginPair:
    """The two copies of one login, and the file that remembers their last agreement."""

    inside: Path
    outside: Path
    agreed: Path

    def follow(self) -> bool:
        """Bring the copies in step; False if the one inside is not to be taken.

        A copy that vanished (a logout) or holds no JSON object changes nothing. Raises
        `OSError`.
        """
        # A link of the owner's is followed, one that was put inside is not.
        target = Path(os.path.realpath(self.outside))
        inside, outside = _read_login(self.inside), _read_login(target)
        agreed_inside, _, agreed_outside = _read_digests(self.agreed).partition(" ")
        refused = False
        if inside is not None and not _is_known(inside, outside, agreed_inside):
            fresh = self._fresh(inside, outside, target, agreed=bool(agreed_inside))
            if fresh is not None:
                replace_file(target, fresh.data, mode=LOGIN_MODE)
                self._agree(inside, fresh)
                return True
            refused = True
        if outside is not None and outside.digest != agreed_outside:
            replace_file(self.inside, outside.data, mode=LOGIN_MODE)
            self._agree(outside, outside)
        return not refused

    def _fresh(
        self, inside: _Login, outside: _Login | None, target: Path, *, agreed: bool
    ) -> _Login | None:
        """Return what the owner's login becomes by *inside*; None: it stays."""
        if outside is not None:
            fresh = refresh_login(outside.values, inside.values)
        elif agreed or target.exists():
            return None  # the owner logged out, or has what we do not understand
        else:
            fresh = first_login(inside.values)
        return None if fresh is None else _Login(_render(fresh), fresh)

    def _agree(self, inside: _Login, outside: _Login) -> None:
        digests = f"{inside.digest} {outside.digest}"
        replace_file(self.agreed, digests.encode(), mode=LOGIN_MODE)


def _is_known(inside: _Login, outside: _Login | None, agreed: str) -> bool:
    return inside.digest == agreed or inside == outside


def _render(login: Json) -> bytes:
    """Return *login* as the CLI writes it: compact."""
    return json.dumps(login, separators=(",", ":")).encode()


def _read_login(path: Path) -> _Login | None:
    """Return the login at *path*; None if there is no regular file with an object."""
    try:
        data = read_regular(path, limit_bytes=LOGIN_LIMIT_BYTES)
    except OSError:
        return None
    values = parse_config(data)
    return _Login(data, values) if values else None


def _read_digests(path: Path) -> str:
    """Return the digests, inside and outside, of the last agreement; "" before it."""
    try:
        data = read_regular(path, limit_bytes=DIGEST_LIMIT_BYTES)
    except OSError:
        return ""
    return data.decode("ascii", "replace")
