"""What a sandbox may see, as JSON and back."""

from pathlib import Path

from sidestage.terminals.model import AgentFiles, SandboxProfile
from terminal_host.fields import (
    read_flag,
    read_object,
    read_optional_text,
    read_paths,
    read_text,
)
from terminal_host.wire import Frame


def encode_profile(profile: SandboxProfile) -> Frame:
    """Return *profile* as JSON."""
    return {
        "project": str(profile.project),
        "project_read_only": profile.project_read_only,
        "home": str(profile.home),
        "state_dir": str(profile.state_dir),
        "program_dirs": _texts(profile.program_dirs),
        "agent": None if profile.agent is None else _encode_agent(profile.agent),
        "network": profile.network,
        "hidden": _texts(profile.hidden),
        "git_config": profile.git_config,
    }


def decode_profile(value: object) -> SandboxProfile:
    """Return the profile in *value*; raises `FrameInvalid`."""
    fields = read_object(value)
    agent = fields.get("agent")
    return SandboxProfile(
        project=Path(read_text(fields, "project")),
        project_read_only=read_flag(fields, "project_read_only"),
        home=Path(read_text(fields, "home")),
        state_dir=Path(read_text(fields, "state_dir")),
        program_dirs=read_paths(fields, "program_dirs"),
        agent=None if agent is None else _decode_agent(agent),
        network=read_flag(fields, "network"),
        hidden=read_paths(fields, "hidden"),
        git_config=read_text(fields, "git_config"),
    )


def _encode_agent(files: AgentFiles) -> Frame:
    hook = files.hook_program
    return {
        "config_dir": str(files.config_dir),
        "transcripts": str(files.transcripts),
        "private_dir": str(files.private_dir),
        "config_file": str(files.config_file),
        "read_only": _texts(files.read_only),
        "read_write": _texts(files.read_write),
        "hook_program": None if hook is None else str(hook),
    }


def _decode_agent(value: object) -> AgentFiles:
    fields = read_object(value)
    hook = read_optional_text(fields, "hook_program")
    return AgentFiles(
        config_dir=Path(read_text(fields, "config_dir")),
        transcripts=Path(read_text(fields, "transcripts")),
        private_dir=Path(read_text(fields, "private_dir")),
        config_file=Path(read_text(fields, "config_file")),
        read_only=read_paths(fields, "read_only"),
        read_write=read_paths(fields, "read_write"),
        hook_program=None if hook is None else Path(hook),
    )


def _texts(paths: tuple[Path, ...]) -> list[str]:
    return [str(path) for path in paths]
