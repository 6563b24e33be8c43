"""Runs a program inside bubblewrap, or says why that cannot be done here.

What is confined and what is not stands in `docs/sandbox.md`. The command is a small
launcher (`confine.py`) that gives up rights and becomes bubblewrap; commands, options
and filter travel over descriptors, because argument lists are readable by every user of
the machine.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from sidestage.errors import AgentNotFound, SandboxUnavailable
from sidestage.terminals.model import CreateTerminal, SandboxProfile, SandboxReport
from terminal_host.host import confine, sandbox_probe
from terminal_host.host.ports import Confined
from terminal_host.host.sandbox_descriptors import MemoryFiles
from terminal_host.host.sandbox_options import Descriptors, list_options
from terminal_host.host.sandbox_probe import SandboxProbe
from terminal_host.host.sandbox_project import hold_mounts, list_mounts
from terminal_host.host.seccomp import MACHINES, build_filter

_NO_SANDBOX: Final = SandboxReport(
    enabled=False, kind="none", signals_confined=False, project_writable=True
)
_RESET: Final = "--default-signal=" + ",".join(
    number.name.removeprefix("SIG") for number in confine.KEYBOARD_SIGNALS
)
"""The option of coreutils' `env` (8.31, of 2019) that gives signals back."""

_TRIAL: Final = SandboxProfile(
    project=Path("/usr"),
    project_read_only=True,
    home=Path("/tmp/home"),  # noqa: S108 - these two exist inside only
    state_dir=Path("/tmp/state"),  # noqa: S108
    program_dirs=(),
    agent=None,
)


class BubblewrapConfiner:
    """Confines programs with bubblewrap (`terminal_host.host.ports.Confiner`).

    It reads its launcher once, so that replacing the package under a running host does
    not mix versions. A trial that succeeded is remembered; one that failed is not, so
    a machine that was mended needs no restart.
    """

    def __init__(self, *, program: str = "bwrap", allow_root: bool = False) -> None:
        self._program = program
        self._allow_root = allow_root
        self._launcher = Path(confine.__file__).read_bytes()
        self._proven: SandboxProbe | None = None
        self._reset: tuple[str, ...] = ()
        self._holds_folders = False

    def probe(self) -> SandboxProbe:
        """Try the sandbox out, or remember that it has worked."""
        if self._proven is None:
            probe = self._try_out()
            if probe.refusal:
                return probe
            self._proven = probe
        return self._proven

    @contextmanager
    def confine(self, request: CreateTerminal) -> Iterator[Confined]:
        """Make the command for *request* (see the port)."""
        argv = (_find_program(request), *request.argv[1:])
        if request.sandbox is None:
            yield Confined(argv=argv, pass_fds=(), report=_NO_SANDBOX)
            return
        probe = self.probe()
        if probe.refusal:
            raise SandboxUnavailable(probe.refusal)
        with ExitStack() as stack:
            yield self._command(request.sandbox, request.directory, argv, stack)

    def _command(
        self,
        profile: SandboxProfile,
        directory: Path,
        argv: tuple[str, ...],
        stack: ExitStack,
    ) -> Confined:
        """Lay out the descriptors, which *stack* closes, and the launcher's command."""
        bubblewrap = shutil.which(self._program)
        if bubblewrap is None:
            raise SandboxUnavailable(sandbox_probe.INSTALL)
        files = MemoryFiles(stack)
        project = (
            hold_mounts(profile, stack) if self._holds_folders else list_mounts(profile)
        )
        folders = tuple(m.descriptor for m in project if m.descriptor is not None)
        options = list_options(
            profile,
            directory=directory,
            project=project,
            descriptors=_hold_contents(profile, files),
        )
        listed = files.hold_list("options", options)
        kept = (*files.descriptors, *folders)
        # `env` would take a program with "=" in its path for a variable.
        reset = () if "=" in argv[0] else self._reset
        command = (bubblewrap, "--args", str(listed), "--", *reset, *argv)
        scoped = confine.landlock_abi() >= confine.LANDLOCK_SCOPES_ABI
        signals = ("scoped" if scoped else "", "deaf" if reset else "")
        return Confined(
            argv=self._launch(files, command, ",".join(filter(None, signals)), kept),
            pass_fds=(*files.descriptors, *folders),
            report=SandboxReport(
                enabled=True,
                kind="bubblewrap",
                signals_confined=scoped,
                project_writable=not profile.project_read_only,
            ),
        )

    def _launch(
        self,
        files: MemoryFiles,
        command: tuple[str, ...],
        signals: str,
        kept: tuple[int, ...],
    ) -> tuple[str, ...]:
        """Return the command line that runs the launcher on *command*."""
        held = files.hold_list("command", command)
        launcher = files.hold("launcher", self._launcher)
        script = f"/proc/self/fd/{launcher}"
        numbers = map(str, kept)
        return (
            *(sys.executable, "-I", "-S", script, str(held)),
            *(signals or "-", *numbers),
        )

    def _try_out(self) -> SandboxProbe:
        """Run `true` in an empty sandbox and judge how that went."""
        abi = confine.landlock_abi()
        obstacle = sandbox_probe.find_obstacle(
            self._program, allow_root=self._allow_root
        )
        if obstacle:
            return SandboxProbe(obstacle, None, abi)
        version = sandbox_probe.find_version(self._program)
        refusal = sandbox_probe.refuse_version(version)
        if refusal:
            return SandboxProbe(refusal, version, abi)
        self._reset = _find_reset()
        self._holds_folders = sandbox_probe.binds_descriptors(self._program)
        return SandboxProbe(self._run_trial(), version, abi)

    def _run_trial(self) -> str | None:
        """Start `true` with all that a terminal gets; return what is wrong."""
        true = shutil.which("true") or "/bin/true"
        with ExitStack() as stack:
            confined = self._command(_TRIAL, Path("/"), (true,), stack)
            done = sandbox_probe.run_trial(confined.argv, pass_fds=confined.pass_fds)
        if done is None:
            return "The trial of the sandbox (bubblewrap) did not end."
        return sandbox_probe.explain_failure(done.stderr) if done.returncode else None


def _hold_contents(profile: SandboxProfile, files: MemoryFiles) -> Descriptors:
    """Hold what bubblewrap reads besides its options."""
    program = build_filter(MACHINES[platform.machine()])
    seccomp = files.hold("seccomp", program)
    if not profile.git_config:
        return Descriptors(seccomp=seccomp, git_config=None)
    held = files.hold("git-config", profile.git_config.encode())
    return Descriptors(seccomp=seccomp, git_config=held)


def _find_reset() -> tuple[str, ...]:
    """Return the words before a program that give it the keyboard's signals back.

    Empty without GNU's `env`: then Ctrl-C ends a program that catches it, unless it
    reads the keyboard raw (agents do) or leads a group of its own (shells do).
    """
    env = shutil.which("env")
    true = shutil.which("true")
    if env is None or true is None:
        return ()
    done = sandbox_probe.run_trial([env, _RESET, true])
    return (env, _RESET) if done is not None and done.returncode == 0 else ()


def _find_program(request: CreateTerminal) -> str:
    """Return the program's path as the child's PATH leads to it.

    Raises `AgentNotFound`. The path is not resolved further: version managers put links
    there whose name says which program is meant.
    """
    wanted = request.argv[0]
    found = shutil.which(wanted, path=request.environment.get("PATH", os.defpath))
    if found is None:
        raise AgentNotFound(f"The program {wanted} is not on the server's PATH.")
    return str(Path(found).absolute())
