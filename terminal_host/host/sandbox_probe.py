"""Whether this machine can run sandboxes, and what to install or change if not."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from terminal_host.host.confine import LANDLOCK_SCOPES_ABI
from terminal_host.host.reaping import helper_children
from terminal_host.host.seccomp import MACHINES

OLDEST_BUBBLEWRAP: Final = (0, 5)
"""Of 2021; it knows every option we use. 0.8 is what was measured."""
TRIAL_PATIENCE_SECONDS: Final = 10.0
"""A trial takes about 20 ms; a machine that needs longer than this is broken."""
INSTALL: Final = (
    "Install bubblewrap (Debian, Ubuntu, Fedora, Arch: the package `bubblewrap`)."
)


@dataclass(frozen=True, slots=True)
class SandboxProbe:
    """What a trial of the sandbox showed: what `doctor` prints."""

    refusal: str | None
    """A sentence that says what to install or change; None when all is well."""
    bubblewrap_version: str | None
    landlock_abi: int

    @property
    def signals_confined(self) -> bool:
        """Whether signals to processes outside are refused inside."""
        return self.landlock_abi >= LANDLOCK_SCOPES_ABI


def find_obstacle(program: str, *, allow_root: bool) -> str | None:
    """Return the sentence for what can be told without trying; None if nothing can."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return (
            "Sandboxed terminals need Linux on x86-64 or ARM64; "
            f"this is {platform.system()} on {platform.machine()}."
        )
    if os.geteuid() == 0 and not allow_root:
        return "Run Sidestage as an ordinary user: root cannot be confined."
    if shutil.which(program) is None:
        return INSTALL
    return None


def find_version(program: str) -> str | None:
    """Ask bubblewrap for its version (`bubblewrap 0.8.0`); None if it does not tell."""
    done = run_trial([program, "--version"])
    found = re.search(r"\d+(\.\d+)+", done.stdout) if done else None
    return found.group() if found else None


def refuse_version(version: str | None) -> str | None:
    """Return the sentence for a bubblewrap that is too old, or tells no version."""
    if version and tuple(map(int, version.split("."))) >= OLDEST_BUBBLEWRAP:
        return None
    wanted = ".".join(map(str, OLDEST_BUBBLEWRAP))
    found = f"version {version}" if version else "one that does not tell its version"
    return f"Install bubblewrap {wanted} or newer; {found} was found."


def binds_descriptors(program: str) -> bool:
    """Tell whether bubblewrap can mount an open folder.

    0.10 can, and older ones that distributions mended after CVE-2024-42472.
    """
    done = run_trial([program, "--help"])
    return done is not None and "--ro-bind-fd" in done.stdout + done.stderr


def run_trial(
    argv: Sequence[str], *, pass_fds: tuple[int, ...] = ()
) -> "subprocess.CompletedProcess[str] | None":
    """Run *argv* to its end; None if it does not start, or does not end in time."""
    try:
        with helper_children():
            return subprocess.run(
                argv,
                pass_fds=pass_fds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TRIAL_PATIENCE_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return None


def explain_failure(message: str) -> str:
    """Return what to change, from what bubblewrap said when its trial failed."""
    last = message.strip().splitlines()[-1] if message.strip() else "nothing"
    if "namespace" in message or "uid map" in message or "RTM_NEWADDR" in message:
        return (
            "This machine forbids user namespaces to ordinary users, which the sandbox "
            "needs. Set kernel.unprivileged_userns_clone=1 (Debian), or give bwrap an "
            "AppArmor profile with `userns` or set "
            "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, "
            f"allow them there. bubblewrap said: {last}"
        )
    if "mount proc" in message:
        return (
            "This container hides parts of /proc, so a sandbox cannot have one of its "
            "own. Run it with `--security-opt systempaths=unconfined` (Docker, Podman "
            f"`--security-opt unmask=ALL`). bubblewrap said: {last}"
        )
    return f"The trial of the sandbox failed. bubblewrap said: {last}"
