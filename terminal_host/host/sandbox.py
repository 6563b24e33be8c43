"""Runs a program inside bubblewrap, or says why that cannot be done here.

What is confined and what is not stands in `docs/sandbox.md`. The command is a small
launcher (`confine.py`) that gives up rights and becomes bubblewrap; commands, options
and filter travel over descriptors, because argument lists are readable by every user of
the machine.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.errors import AgentNotFound, SandboxUnavailable
from sidestage.terminals.model import CreateTerminal, SandboxProfile, SandboxReport
from terminal_host.host import confine
from terminal_host.host.ports import Confined
from terminal_host.host.sandbox_options import Descriptors, list_options
from terminal_host.host.seccomp import MACHINES, build_filter

OLDEST_BUBBLEWRAP: Final = (0, 5)
"""The first that knows `--chmod` and `--perms`' kin; 0.8 is what we measured with."""
TRIAL_PATIENCE_SECONDS: Final = 10.0
"""A trial takes about 20 ms; a machine that needs longer than this is broken."""

_NO_SANDBOX: Final = SandboxReport(
    enabled=False, kind="none", signals_confined=False, project_writable=True
)


@dataclass(frozen=True, slots=True)
class SandboxProbe:
    """Whether this machine can run sandboxes: what `doctor` prints."""

    refusal: str | None
    """A sentence that says what to install or change; None when all is well."""
    bubblewrap_version: str | None
    landlock_abi: int

    @property
    def signals_confined(self) -> bool:
        """Whether signals to processes outside are refused inside."""
        return self.landlock_abi >= confine.LANDLOCK_SCOPES_ABI


class BubblewrapConfiner:
    """Confines programs with bubblewrap. It keeps nothing open between calls.

    *launcher* is read once, so that replacing the package under a running host does not
    mix versions. A trial that succeeded is remembered; one that failed is not, so a
    machine that was mended needs no restart.
    """

    def __init__(self, *, program: str = "bwrap", allow_root: bool = False) -> None:
        self._program = program
        self._allow_root = allow_root
        self._launcher = Path(confine.__file__).read_bytes()
        self._proven: SandboxProbe | None = None

    def probe(self) -> SandboxProbe:
        """Try the sandbox out, once it has worked only by memory."""
        if self._proven is None:
            probe = self._try_out()
            if probe.refusal:
                return probe
            self._proven = probe
        return self._proven

    @contextmanager
    def confine(self, request: CreateTerminal) -> Iterator[Confined]:
        """Make the command for *request* (see `Confiner`)."""
        program = _find_program(request)
        argv = (program, *request.argv[1:])
        if request.sandbox is None:
            yield Confined(argv=argv, pass_fds=(), report=_NO_SANDBOX)
            return
        probe = self.probe()
        if probe.refusal:
            raise SandboxUnavailable(probe.refusal)
        with ExitStack() as stack:
            yield self._confined(request.sandbox, request.directory, argv, stack)

    def _confined(
        self,
        profile: SandboxProfile,
        directory: Path,
        argv: tuple[str, ...],
        stack: ExitStack,
    ) -> Confined:
        """Lay out the descriptors; *stack* closes them."""
        files = _MemoryFiles(stack)
        descriptors = Descriptors(
            seccomp=files.hold("seccomp", build_filter(MACHINES[platform.machine()])),
            git_config=files.hold("git-config", profile.git_config.encode())
            if profile.git_config
            else None,
        )
        options = list_options(profile, directory=directory, descriptors=descriptors)
        return self._launch(
            options, argv, files, writable=not profile.project_read_only
        )

    def _launch(
        self,
        options: tuple[str, ...],
        argv: tuple[str, ...],
        files: "_MemoryFiles",
        *,
        writable: bool,
    ) -> Confined:
        """Return the launcher's command for bubblewrap with *options* and *argv*."""
        bubblewrap = shutil.which(self._program)
        if bubblewrap is None:
            raise SandboxUnavailable(_INSTALL)
        scoped = confine.landlock_abi() >= confine.LANDLOCK_SCOPES_ABI
        kept = list(files.held)
        held_options = files.hold("options", _join(options))
        kept.append(held_options)
        command = (bubblewrap, "--args", str(held_options), "--", *argv)
        held_command = files.hold("command", _join(command))
        launcher = files.hold("launcher", self._launcher)
        return Confined(
            argv=(
                sys.executable,
                "-I",
                "-S",
                f"/proc/self/fd/{launcher}",
                str(held_command),
                "scoped" if scoped else "unscoped",
                *map(str, kept),
            ),
            pass_fds=tuple(files.held),
            report=SandboxReport(
                enabled=True,
                kind="bubblewrap",
                signals_confined=scoped,
                project_writable=writable,
            ),
        )

    def _try_out(self) -> SandboxProbe:
        """Run `true` in an empty sandbox and judge how that went."""
        abi = confine.landlock_abi()
        refusal = self._precondition()
        if refusal:
            return SandboxProbe(refusal, None, abi)
        version = _read_version(self._program)
        if version is None or _as_numbers(version) < OLDEST_BUBBLEWRAP:
            return SandboxProbe(_too_old(version), version, abi)
        return SandboxProbe(self._run_trial(), version, abi)

    def _precondition(self) -> str | None:
        """Return the sentence for what can be told without trying."""
        if sys.platform != "linux" or platform.machine() not in MACHINES:
            return (
                "Sandboxed terminals need Linux on x86-64 or ARM64; "
                f"this is {platform.system()} on {platform.machine()}."
            )
        if os.geteuid() == 0 and not self._allow_root:
            return "Run Sidestage as an ordinary user: root cannot be confined."
        if shutil.which(self._program) is None:
            return _INSTALL
        return None

    def _run_trial(self) -> str | None:
        """Start the shell's `true` with the namespaces and the filter of a terminal."""
        home = Path("/tmp/home")  # noqa: S108 - inside the sandbox
        profile = SandboxProfile(
            project=Path("/usr"),
            project_read_only=True,
            home=home,
            state_dir=Path("/tmp/sidestage-trial"),  # noqa: S108 - inside the sandbox
            program_dirs=(),
            agent=None,
        )
        with ExitStack() as stack:
            confined = self._confined(profile, Path("/usr"), ("/bin/true",), stack)
            try:
                done = subprocess.run(
                    confined.argv,
                    pass_fds=confined.pass_fds,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=TRIAL_PATIENCE_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return "The trial of the sandbox (bubblewrap) did not end."
        return None if done.returncode == 0 else explain_failure(done.stderr)


_INSTALL: Final = (
    "Install bubblewrap (Debian, Ubuntu, Fedora, Arch: the package `bubblewrap`)."
)


def _too_old(version: str | None) -> str:
    """Return the sentence for a bubblewrap that is too old, or does not answer."""
    wanted = ".".join(map(str, OLDEST_BUBBLEWRAP))
    found = f"version {version}" if version else "one that does not tell its version"
    return f"Install bubblewrap {wanted} or newer; {found} was found."


def explain_failure(message: str) -> str:
    """Return what to change, from what bubblewrap said when its trial failed."""
    last = message.strip().splitlines()[-1] if message.strip() else "no message"
    if "namespace" in message or "uid map" in message or "RTM_NEWADDR" in message:
        return (
            "This machine forbids user namespaces to ordinary users, which the sandbox "
            "needs. Set kernel.unprivileged_userns_clone=1 (Debian), or give bwrap an "
            "AppArmor profile with `userns` or set "
            "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, "
            f"allow them there. bubblewrap said: {last}"
        )
    return f"The trial of the sandbox failed. bubblewrap said: {last}"


def _read_version(program: str) -> str | None:
    """Ask bubblewrap for its version (`bubblewrap 0.8.0`)."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRIAL_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return found.group() if found else None


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


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


def _join(parts: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(part) + b"\0" for part in parts)


class _MemoryFiles:
    """Files that exist as descriptors only; *stack* closes them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.held: list[int] = []

    def hold(self, name: str, content: bytes) -> int:
        """Return an inheritable descriptor that reads *content* from its start."""
        descriptor = os.memfd_create(f"sidestage-{name}", flags=0)
        self._stack.callback(os.close, descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as target:
            target.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self.held.append(descriptor)
        return descriptor
