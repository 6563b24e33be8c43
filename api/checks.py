"""What works on this machine, and what to do about the rest.

The checks see what their process sees: its PATH, its rights. So the server makes them
where one runs, and `sidestage doctor` only where none does.
"""

import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from api.findings import Finding, Verdict
from api.hook_program import installed_command
from api.service_checks import check_clock, check_service, judge_resume
from sidestage import __version__
from sidestage.agents.claude_code.hook_installer import (
    SETTINGS_NAME,
    look_at_hooks,
)
from sidestage.errors import StateFolderUnsafe
from sidestage.sessions.hook_setup import HookState, HookStatus
from sidestage.settings import Settings
from sidestage.state import check_socket_path
from sidestage.terminals.environment import child_environment
from terminal_host.host.sandbox import BubblewrapConfiner

TESTED_CLAUDE: Final = "2.1.328"
"""The version of Claude Code the tests run."""
VERSION_PATIENCE_SECONDS: Final = 10.0
DISK_WANTED_BYTES: Final = 100 * 1024 * 1024
WATCHES_WANTED: Final = 8_192
"""inotify watches: one a folder of sessions, and other programs need theirs."""

_BAD_HOOKS: Final = (HookState.OUTDATED, HookState.UNREADABLE)
WATCHES_FILE: Final = Path("/proc/sys/fs/inotify/max_user_watches")


def list_findings(settings: Settings) -> tuple[Finding, ...]:
    """Make every check; blocking, for seconds if a program does not answer."""
    findings = tuple(check(settings) for check in CHECKS)
    return (*findings, judge_resume(settings, findings))


def _check_python(_: Settings) -> Finding:
    sentence = f"Sidestage {__version__} on Python {platform.python_version()}."
    return Finding("program", Verdict.OK, sentence)


def _check_state_folder(settings: Settings) -> Finding:
    folder = settings.state_dir
    try:
        check_socket_path(settings.control_socket)
    except StateFolderUnsafe as error:
        return Finding("state folder", Verdict.PROBLEM, str(error))
    if not folder.exists():
        sentence = f"{folder} does not exist yet; the server makes it."
        return Finding("state folder", Verdict.OK, sentence)
    if folder.stat().st_mode & 0o077:
        sentence = f"{folder} is open to others; the server closes it at its start."
        return Finding("state folder", Verdict.WARNING, sentence)
    free = shutil.disk_usage(folder).free
    if free < DISK_WANTED_BYTES:
        sentence = f"Only {free // 2**20} MiB are free below {folder}. Make room."
        return Finding("state folder", Verdict.PROBLEM, sentence)
    return Finding("state folder", Verdict.OK, f"{folder} is ours alone.")


def _check_sandbox(settings: Settings) -> Finding:
    if not settings.sandbox:
        sentence = "Switched off by the setting `sandbox`: agents have all your rights."
        return Finding("sandbox", Verdict.WARNING, sentence)
    probe = BubblewrapConfiner(allow_root=settings.allow_root).probe()
    if probe.refusal is not None:
        return Finding("sandbox", Verdict.PROBLEM, probe.refusal)
    sentence = f"bubblewrap {probe.bubblewrap_version} works."
    if not probe.signals_confined:
        sentence += (
            " This kernel cannot keep a sandboxed program from sending signals to "
            "your other processes (that takes Linux 6.12)."
        )
        return Finding("sandbox", Verdict.WARNING, sentence)
    return Finding("sandbox", Verdict.OK, sentence)


def _check_claude(settings: Settings) -> Finding:
    program = shutil.which("claude", path=settings.path)
    if program is None:
        sentence = (
            "`claude` is not on the PATH. Sessions are still listed; to resume one, "
            "install Claude Code or start the server with a PATH that has it."
        )
        return Finding("claude", Verdict.WARNING, sentence)
    version = _version_of(program, settings)
    if version is None:
        sentence = (
            f"{program} does not say its version, with the environment that terminals "
            "get. What else it needs is named in the setting `pass_environment`."
        )
        return Finding("claude", Verdict.PROBLEM, sentence)
    sentence = f"{program} is version {version}."
    if version == TESTED_CLAUDE:
        return Finding("claude", Verdict.OK, sentence)
    if _numbers(version) > _numbers(TESTED_CLAUDE):
        sentence += (
            f" That is newer than {TESTED_CLAUDE}, which Sidestage was tested with: "
            "what it records may have changed."
        )
        return Finding("claude", Verdict.WARNING, sentence)
    return Finding(
        "claude", Verdict.OK, f"{sentence} The tests ran with {TESTED_CLAUDE}."
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d{1,9}", version)[:3])


def _version_of(program: str, settings: Settings) -> str | None:
    try:
        done = subprocess.run(
            [program, "--version"],
            # As a terminal would have it: what it needs of ours must be passed.
            env=child_environment(
                settings.environment, passed=settings.pass_environment
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_PATIENCE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    words = done.stdout.split()
    return words[0] if words else None


def _check_sources(settings: Settings) -> Finding:
    found = [str(folder) for folder in settings.claude_dirs if folder.is_dir()]
    if not found:
        named = ", ".join(map(str, settings.claude_dirs))
        sentence = f"No sessions yet: {named} does not exist. It is waited for."
        return Finding("sessions", Verdict.WARNING, sentence)
    return Finding("sessions", Verdict.OK, f"Looked for in {', '.join(found)}.")


def _check_hooks(settings: Settings) -> Finding:
    command = installed_command(settings)
    found = [
        look_at_hooks(folder / SETTINGS_NAME, command)
        for folder in settings.claude_dirs
    ]
    bad = [it for it in found if it.state in _BAD_HOOKS]
    if bad:
        return Finding("hooks", Verdict.WARNING, " ".join(map(_tell, bad)))
    return Finding("hooks", Verdict.OK, " ".join(map(_tell, found)))


def _tell(status: HookStatus) -> str:
    if status.state is HookState.ABSENT:
        return f"Not installed in {status.settings_file} (`sidestage hooks install`)."
    if status.state is HookState.INSTALLED:
        return f"Installed in {status.settings_file}."
    if status.state is HookState.OUTDATED:
        return f"{status.settings_file}: {status.note}"
    return str(status.note)


def _check_watches(_: Settings) -> Finding:
    try:
        limit = int(WATCHES_FILE.read_text())
    except (OSError, ValueError):
        return Finding("watches", Verdict.OK, "No inotify here; changes are polled.")
    if limit < WATCHES_WANTED:
        sentence = (
            f"fs.inotify.max_user_watches is {limit}. When other programs use them up, "
            "changes are polled and come later. Raise it: sudo sysctl "
            "fs.inotify.max_user_watches=524288"
        )
        return Finding("watches", Verdict.WARNING, sentence)
    return Finding("watches", Verdict.OK, f"{limit} inotify watches are allowed.")


CHECKS: Final[tuple[Callable[[Settings], Finding], ...]] = (
    _check_python,
    _check_state_folder,
    _check_sandbox,
    _check_claude,
    _check_sources,
    _check_hooks,
    _check_watches,
    check_clock,
    check_service,
)
"""In the order in which they are shown."""
