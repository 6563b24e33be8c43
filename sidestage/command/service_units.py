"""What a service manager is told: the texts of systemd's units and launchd's plists.

Two services: the server, and the host of the terminals, so that a restart of the first
(an upgrade, a new setting) ends no terminal. All here is pure: settings in, texts out.
"""

import plistlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.command.failure import CommandFailed
from sidestage.settings import ENVIRONMENT_PREFIX, Settings
from sidestage.terminals.environment import passes

SERVER_UNIT: Final = "sidestage.service"
HOST_UNIT: Final = "sidestage-host.service"
SERVER_LABEL: Final = "sidestage.server"
HOST_LABEL: Final = "sidestage.host"
ENVIRONMENT_FILE: Final = "service.env"
STOP_SECONDS: Final = 15
"""Both end within ten by themselves; then systemd kills what is left."""
RESTART_SECONDS: Final = 2
_OWN: Final = frozenset({"CLAUDE_CONFIG_DIR"})
_MANAGERS_OWN: Final = frozenset({"HOME", "USER", "LOGNAME"})
"""A service manager knows them better than the shell of the installation."""
_HOSTS: Final = ("PATH", "LANG", "TZ")
_HOSTS_PREFIX: Final = "LC_"


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What runs as a service, for whom, and where."""

    python: str
    state_dir: Path
    environment: Mapping[str, str]
    host_arguments: tuple[str, ...] = ()

    @property
    def environment_file(self) -> Path:
        """The file that holds the server's recorded environment."""
        return self.state_dir / ENVIRONMENT_FILE

    @property
    def server_command(self) -> tuple[str, ...]:
        """The command line of the server."""
        # -P: the folder it starts in must not lend it its modules.
        start = (self.python, "-P", "-m", "sidestage", "serve")
        return (*start, "--state-dir", str(self.state_dir))

    @property
    def host_command(self) -> tuple[str, ...]:
        """The command line of the terminal host."""
        start = (self.python, "-P", "-m", "terminal_host.host")
        return (*start, "--state-dir", str(self.state_dir), *self.host_arguments)

    @property
    def host_environment(self) -> dict[str, str]:
        """What the host needs itself; terminals get theirs with their start."""
        return {
            name: value
            for name, value in self.environment.items()
            if name in _HOSTS or name.startswith(_HOSTS_PREFIX)
        }


def recorded_environment(settings: Settings) -> dict[str, str]:
    """Return what of the installing shell's environment the service will have.

    A service manager starts programs with a `PATH` of its own, on which an agent that
    a version manager installed is not found.
    """
    return {
        name: value
        for name, value in sorted(settings.environment.items())
        if name not in _MANAGERS_OWN
        and (
            passes(name)
            or name in _OWN
            or name in settings.pass_environment
            or name.startswith(ENVIRONMENT_PREFIX)
        )
        and name != f"{ENVIRONMENT_PREFIX}STATE_DIR"
    }


def write_environment(environment: Mapping[str, str]) -> str:
    """Return the text of systemd's `EnvironmentFile` (systemd.exec(5))."""
    lines = [f"{name}={_quoted_value(value)}" for name, value in environment.items()]
    return "\n".join(["# Recorded by `sidestage service install`.", *lines, ""])


def _quoted_value(value: str) -> str:
    for special in ("\\", '"', "`", "$"):
        value = value.replace(special, "\\" + special)
    return f'"{value}"'


def server_unit(plan: ServicePlan) -> str:
    """Return the server's systemd user unit."""
    return f"""\
[Unit]
Description=Sidestage: coding-agent sessions through one API
Wants={HOST_UNIT}
After={HOST_UNIT}

[Service]
Type=exec
EnvironmentFile={_path(plan.environment_file)}
ExecStart={_command(plan.server_command)}
UMask=0077
Restart=on-failure
RestartSec={RESTART_SECONDS}
TimeoutStopSec={STOP_SECONDS}
# A terminal host that the server had to start itself must outlive it.
KillMode=process

[Install]
WantedBy=default.target
"""


def host_unit(plan: ServicePlan) -> str:
    """Return the terminal host's systemd user unit."""
    environment = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n"
        for name, value in plan.host_environment.items()
    )
    return f"""\
[Unit]
Description=Sidestage: the terminals, which outlive the server

[Service]
Type=exec
{environment}ExecStart={_command(plan.host_command)}
UMask=0077
# It ends by itself when nobody needs it, and comes back with the server.
Restart=on-failure
RestartSec={RESTART_SECONDS}
TimeoutStopSec={STOP_SECONDS}
KillMode=mixed
# An agent that ate all memory must not take the other terminals with it.
OOMPolicy=continue
"""


def launch_agent(plan: ServicePlan, label: str) -> bytes:
    """Return launchd's property list for *label*. Untested: no macOS was at hand."""
    is_server = label == SERVER_LABEL
    command = plan.server_command if is_server else plan.host_command
    environment = plan.environment if is_server else plan.host_environment
    return plistlib.dumps(
        {
            "Label": label,
            "ProgramArguments": list(command),
            "EnvironmentVariables": dict(environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ProcessType": "Interactive",
            "Umask": 0o077,
            "ExitTimeOut": STOP_SECONDS,
            "StandardErrorPath": str(plan.state_dir / f"{label}.log"),
        }
    )


def _command(words: Sequence[str]) -> str:
    return " ".join(_word(word) for word in words)


def _word(word: str) -> str:
    """Return *word* for a command line of a unit (systemd.service(5))."""
    return _quoted(word.replace("$", "$$"))


def _quoted(text: str) -> str:
    """Return *text* as one word of a unit (systemd.syntax(7), "Quoting")."""
    _check_line(text)
    for special, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        text = text.replace(special, written)
    return f'"{text}"'


def _path(path: Path) -> str:
    """Return *path* for `EnvironmentFile=`, which is no word: it can be a pattern."""
    text = str(path)
    _check_line(text)
    if any(special in text for special in "*?[\\"):
        raise CommandFailed(
            f"systemd takes {text} for a pattern. Name another state folder."
        )
    return text.replace("%", "%%")


def _check_line(text: str) -> None:
    if "\n" in text or "\0" in text:
        raise CommandFailed(f"{text!r} cannot stand in a service's file.")
