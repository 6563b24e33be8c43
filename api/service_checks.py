"""Checks of what a service depends on: a login that may end, a clock, a resume."""

import ctypes
import getpass
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from api.findings import Finding, Verdict
from sidestage.settings import Settings

CGROUP_FILE: Final = Path("/proc/self/cgroup")
SERVICE_NAME: Final = "sidestage.service"
LINGER_DIR: Final = Path("/var/lib/systemd/linger")
"""Holds a file for each user whose services run without a login (loginctl(1))."""
UNSYNCHRONISED: Final = 5
"""What adjtimex(2) returns (TIME_ERROR) while nothing keeps the clock right."""
TIMEX_BYTES: Final = 256
"""`struct timex` has 208 on every 64-bit Linux; all zeros only asks."""
NEEDED_TO_RESUME: Final = ("state folder", "sandbox", "claude")
RELEASED_AT: Final = 1_790_000_000
"""September 2026, before the first release: no right clock shows less."""


def lingers(folder: Path = LINGER_DIR) -> bool:
    """Tell whether this user's services run without a login."""
    return (folder / getpass.getuser()).exists()


def check_service(_: Settings) -> Finding:
    """Tell whether this process is a service, and outlives its owner's login."""
    try:
        is_service = SERVICE_NAME in CGROUP_FILE.read_text()
    except OSError:
        is_service = False
    if not is_service:
        sentence = "Started by hand (`sidestage service install` makes it a service)."
        return Finding("service", Verdict.OK, sentence)
    if not lingers():
        sentence = (
            "The service stops when you log out and does not start at boot. To change "
            f"that: loginctl enable-linger {getpass.getuser()}"
        )
        return Finding("service", Verdict.WARNING, sentence)
    return Finding("service", Verdict.OK, "A service, also without a login.")


def check_clock(_: Settings) -> Finding:
    """Tell whether the clock can be right: devices' answers expire by it."""
    if time.time() < RELEASED_AT:
        shown = time.strftime("%Y-%m-%d", time.gmtime())
        sentence = f"The clock says {shown}. Sealed answers cannot be checked by it."
        return Finding("clock", Verdict.PROBLEM, sentence)
    if _clock_state() == UNSYNCHRONISED:
        sentence = (
            "Nothing keeps the clock right. When it is minutes off, answers of paired "
            "devices are refused as too old. Switch on: timedatectl set-ntp true"
        )
        return Finding("clock", Verdict.WARNING, sentence)
    return Finding("clock", Verdict.OK, "The clock is kept right.")


def _clock_state() -> int:
    """Return what the kernel says of its clock; 0 where it cannot be asked."""
    try:
        buffer = ctypes.create_string_buffer(TIMEX_BYTES)
        return int(ctypes.CDLL(None).adjtimex(buffer))
    except (OSError, AttributeError):  # no such call here, as on macOS
        return 0


def judge_resume(settings: Settings, findings: Iterable[Finding]) -> Finding:
    """Join what a resume needs of the other *findings*, and whether the agent is there.

    A session of an agent that is not installed is only listed: no problem by itself.
    """
    lacking = [
        each.name
        for each in findings
        if each.name in NEEDED_TO_RESUME and each.verdict is Verdict.PROBLEM
    ]
    if shutil.which("claude", path=settings.path) is None:
        lacking.append("claude")
    if lacking:
        sentence = f"A session cannot be resumed: see {', '.join(lacking)} above."
        return Finding("resume", Verdict.WARNING, sentence)
    return Finding("resume", Verdict.OK, "A session that has ended can be resumed.")
