"""From a profile to bubblewrap's options: what a sandbox sees, in the order it is laid.

A later mount covers an earlier one, so the order is the policy: everything read-only,
then the masks, then the few things let through, the state folder's mask last. Each
source of a mount is looked up outside of the sandbox.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.errors import SandboxUnavailable
from sidestage.projects.bounds import MASKED_FOLDERS
from sidestage.terminals.environment import (
    GIT_CONFIG_INSIDE,
    HOOK_FOLDER_INSIDE,
    HOOK_PROGRAM_INSIDE,
)
from sidestage.terminals.model import AgentFiles, SandboxProfile
from terminal_host.host.sandbox_project import ProjectMount

_NAMESPACES: Final = (
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
)
# Not here, on purpose. --unshare-pid: the agent's registry is keyed by pid, and in a
# namespace of its own every agent is pid 2. --new-session: it takes the controlling
# terminal away, and with it job control and SIGWINCH; nothing outside reads our PTY.
# --setenv: arguments are readable by every user of the machine.

_NAME_SERVICE: Final = (
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/mnt/wsl/resolv.conf",
)
"""What `/etc/resolv.conf` may be a link into."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open descriptors bubblewrap reads: the filter, and the git configuration."""

    seccomp: int
    git_config: int | None = None


def list_options(
    profile: SandboxProfile,
    *,
    directory: Path,
    project: Iterable[ProjectMount],
    descriptors: Descriptors,
) -> tuple[str, ...]:
    """Return bubblewrap's options for *profile*, starting in *directory*.

    *project* are the mounts of `sandbox_project`. Raises `SandboxUnavailable` for a
    program folder that would let in more than programs.
    """
    options = [*_NAMESPACES]
    if not profile.network:
        options.append("--unshare-net")
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    options += _masks(profile)
    if profile.agent:
        options += _agent_options(profile.agent)
    options += _program_options(profile)
    for mount in project:
        options += mount.options()
    if descriptors.git_config is not None:
        options += [
            "--ro-bind-data",
            str(descriptors.git_config),
            str(GIT_CONFIG_INSIDE),
        ]
    options += ["--tmpfs", str(profile.state_dir.resolve())]
    options += ["--chdir", str(directory), "--seccomp", str(descriptors.seccomp)]
    return tuple(options)


def _masks(profile: SandboxProfile) -> Iterator[str]:
    """Cover what is not shared: sockets, homes, other accounts' state."""
    for folder in dict.fromkeys(_real_folders(MASKED_FOLDERS)):
        yield from ("--tmpfs", folder)
    for source in _NAME_SERVICE:
        yield from ("--ro-bind-try", source, source)
    yield from ("--tmpfs", str(profile.home.resolve()))
    if profile.home != profile.home.resolve():
        # The home's other name leads through a folder that is masked now.
        yield from ("--symlink", str(profile.home.resolve()), str(profile.home))
    for folder in _real_folders(map(str, profile.hidden)):
        if not Path(folder).is_relative_to(profile.home.resolve()):
            yield from ("--tmpfs", folder)


def _real_folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield the real path of each folder that exists."""
    for path in paths:
        if (real := Path(path).resolve()).is_dir():
            yield str(real)


def _agent_options(agent: AgentFiles) -> Iterator[str]:
    """Let through of the agent's state folder what its own session needs."""
    private = agent.private_dir
    yield from _bind(private / "config", agent.config_dir)
    yield from _bind(agent.transcripts)
    yield from _bind(private / "sessions", agent.config_dir / "sessions")
    for path in agent.read_only:
        yield from ("--ro-bind", str(path), str(path))
    for path in agent.read_write:
        yield from _bind(path)
    yield from _bind(private / "claude.json", agent.config_file)
    yield from ("--ro-bind", str(private / "hook"), str(HOOK_FOLDER_INSIDE))
    if agent.hook_program:
        yield from ("--ro-bind", str(agent.hook_program), str(HOOK_PROGRAM_INSIDE))


def _program_options(profile: SandboxProfile) -> Iterator[str]:
    """Let the programs in that live inside the home."""
    for folder in profile.program_dirs:
        _refuse_wide(folder, profile)
        yield from ("--ro-bind-try", str(folder), str(folder))


def _refuse_wide(folder: Path, profile: SandboxProfile) -> None:
    """Raise `SandboxUnavailable` if *folder* holds more than programs."""
    guarded = [profile.home.resolve(), profile.state_dir.resolve()]
    if profile.agent:
        guarded.append(profile.agent.config_dir.resolve())
    if any(path.is_relative_to(folder.resolve()) for path in guarded):
        raise SandboxUnavailable(
            f"The program folder {folder} holds private files as well. "
            "Install the program elsewhere, or name a narrower folder."
        )


def _bind(source: Path, target: Path | None = None) -> tuple[str, str, str]:
    return ("--bind", str(source), str(target or source))
