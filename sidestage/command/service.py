"""`sidestage service`: let the system start the server, at login or at boot."""

import argparse
import getpass
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.doorway import descriptor_limit
from api.service_checks import lingers
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_state_dir, settings_of
from sidestage.command.own_name import write_command
from sidestage.command.service_units import (
    HOST_LABEL,
    HOST_UNIT,
    SERVER_LABEL,
    SERVER_UNIT,
    ServicePlan,
    host_unit,
    launch_agent,
    recorded_environment,
    server_unit,
    write_environment,
)
from sidestage.errors import StateFolderUnsafe
from sidestage.settings import Settings
from sidestage.state import lock_state_folder, prepare_state_folder
from terminal_host.gateway.host_start import host_arguments

MANAGER_SECONDS: Final = 30.0
"""What systemctl may take: a stop of the server takes up to ten seconds."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "service",
        help="let the system start the server",
        description="Writes services for your user: the server, and the host of the "
        "terminals, so that restarting the first ends no terminal.",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, run, about in (
        ("install", run_install, "write the services, enable and start them"),
        ("status", run_status, "say what is installed and runs"),
        ("uninstall", run_uninstall, "stop the server and remove the services"),
    ):
        action = actions.add_parser(name, help=about)
        add_state_dir(action)
        action.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """The files of a service, with their texts."""

    texts: dict[Path, bytes]

    def write(self) -> None:
        """Write them for their owner alone: the environment may hold a login."""
        for path, text in self.texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            temporary.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(text)
            temporary.replace(path)

    def remove(self) -> tuple[Path, ...]:
        """Remove those that are there; return them."""
        found = tuple(path for path in self.texts if path.exists())
        for path in found:
            path.unlink()
        return found

    @property
    def missing(self) -> tuple[Path, ...]:
        """Those that are not there."""
        return tuple(path for path in self.texts if not path.exists())

    @property
    def outdated(self) -> tuple[Path, ...]:
        """Those that an installation from this shell would write differently."""
        return tuple(
            path
            for path, text in self.texts.items()
            if path.exists() and path.read_bytes() != text
        )


def files_for(settings: Settings, *, platform: str = sys.platform) -> ServiceFiles:
    """Return the files of the services of *settings* on *platform*."""
    plan = ServicePlan(
        python=sys.executable,
        state_dir=settings.state_dir,
        environment=recorded_environment(settings),
        host_arguments=host_arguments(settings, descriptor_limit()),
    )
    if platform == "darwin":
        folder = settings.home / "Library" / "LaunchAgents"
        labels = (HOST_LABEL, SERVER_LABEL)
        return ServiceFiles(
            {folder / f"{label}.plist": launch_agent(plan, label) for label in labels}
        )
    config = settings.environment.get("XDG_CONFIG_HOME")
    base = Path(config) if config else settings.home / ".config"
    folder = base / "systemd" / "user"
    return ServiceFiles(
        {
            plan.environment_file: write_environment(plan.environment).encode(),
            folder / HOST_UNIT: host_unit(plan).encode(),
            folder / SERVER_UNIT: server_unit(plan).encode(),
        }
    )


def run_install(arguments: argparse.Namespace) -> int:
    """Write the services and start them."""
    settings = settings_of(arguments)
    if os.geteuid() == 0 and not settings.allow_root:
        raise CommandFailed("Run this as the user whose agents it is about, not root.")
    prepare_state_folder(settings.state_dir)
    files = files_for(settings)
    _check_free(settings, files)
    files.write()
    _say(*(f"Wrote {path}" for path in files.texts))
    if sys.platform == "darwin":
        _say_launchd(files)
        return 0
    started = _start()
    _say(*_remarks(settings), f"See: {write_command(settings, 'doctor')}")
    return 0 if started else 1


def _check_free(settings: Settings, files: ServiceFiles) -> None:
    """Refuse while a server that someone started by hand holds the folder."""
    if not files.missing:
        return  # the service's own server may run; the restart replaces it
    try:
        with lock_state_folder(settings.state_dir):
            return
    except StateFolderUnsafe as error:
        raise CommandFailed(
            f"A server runs on {settings.state_dir} already. Stop it first; its "
            "terminals go on running."
        ) from error


def _start() -> bool:
    for words in (
        ("daemon-reload",),
        ("enable", SERVER_UNIT),
        ("restart", SERVER_UNIT),
    ):
        failure = _tell_systemd(*words)
        if failure is not None:
            _say(
                f"systemd did not take it: {failure}",
                "The files are written. Where your user's systemd runs, do:",
                "  systemctl --user daemon-reload",
                f"  systemctl --user enable --now {SERVER_UNIT}",
            )
            return False
    _say("The server runs as a service.")
    return True


def _remarks(settings: Settings) -> tuple[str, ...]:
    remarks = []
    if not lingers():
        remarks.append(
            "It stops when you log out and does not start at boot. To change that: "
            f"loginctl enable-linger {getpass.getuser()}"
        )
    if shutil.which("claude", path=settings.path) is None:
        remarks.append(
            "`claude` is not on this shell's PATH, so the service will not find it "
            "either. Install again from a shell that has it."
        )
    return tuple(remarks)


def _say_launchd(files: ServiceFiles) -> None:
    domain = f"gui/{os.getuid()}"
    _say(
        "These are untested: no macOS was at hand. To start them:",
        *(f"  launchctl bootstrap {domain} {path}" for path in files.texts),
    )


def run_status(arguments: argparse.Namespace) -> int:
    """Say what is installed, what runs, and what is in the way; 1 if it does not."""
    settings = settings_of(arguments)
    files = files_for(settings)
    if files.missing:
        _say(*(f"missing   {path}" for path in files.missing))
        _say(f"Install it: {write_command(settings, 'service install')}")
        return 1
    for path in files.texts:
        is_old = path in files.outdated
        _say(f"{'differs' if is_old else 'installed':9} {path}")
    if files.outdated:
        _say(
            "What differs was installed from another shell, version or setting; "
            f"{write_command(settings, 'service install')} brings it up to date."
        )
    if sys.platform == "darwin":
        return 0
    states = {unit: _state_of(unit) for unit in (SERVER_UNIT, HOST_UNIT)}
    _say(*(f"{state:9} {unit}" for unit, state in states.items()))
    _say(*_remarks(settings))
    return 0 if states[SERVER_UNIT] == "active" else 1


def run_uninstall(arguments: argparse.Namespace) -> int:
    """Stop the server, remove the services; terminals go on running."""
    settings = settings_of(arguments)
    files = files_for(settings)
    if sys.platform != "darwin" and len(files.missing) < len(files.texts):
        failure = _tell_systemd("disable", "--now", SERVER_UNIT)
        if failure is not None:
            _say(f"systemd did not take it: {failure}")
    removed = files.remove()
    if not removed:
        _say("Nothing was installed.")
        return 0
    if sys.platform != "darwin":
        _tell_systemd("daemon-reload")
    _say(
        *(f"Removed {path}" for path in removed),
        "Terminals go on running; their host ends a minute after the last of them.",
        f"Your data stays in {settings.state_dir}",
    )
    return 0


def _tell_systemd(*words: str) -> str | None:
    """Run `systemctl --user`; return what it complains of, or None."""
    try:
        done = subprocess.run(
            ["systemctl", "--user", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MANAGER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return done.stderr.strip() or f"systemctl ended with status {done.returncode}"


def _state_of(unit: str) -> str:
    try:
        done = subprocess.run(
            ["systemctl", "--user", "is-active", unit],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MANAGER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
