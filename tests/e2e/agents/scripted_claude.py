"""The scripted agent in a home of its own: a drop-in for `RealClaude`."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from sidestage.demo.agent import install_scripted_agent
from tests.e2e.pty_program import PtyProgram
from tests.e2e.real_claude import read_registry


class AgentHome(Protocol):
    """A scratch home with an agent: what a scenario needs of either kind."""

    home: Path
    config_dir: Path
    program: Path

    def make_project(self, name: str) -> Path:
        """Make and trust a folder in the home; return its real path."""

    def environment(self, **more: str) -> dict[str, str]:
        """Return the whole environment of a child."""

    def start(
        self,
        *arguments: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> PtyProgram:
        """Start the agent as a person would."""

    def registry(self) -> list[dict[str, Any]]:
        """Return the entries of the registry."""

    def transcripts(self) -> list[Path]:
        """Return every transcript."""


class ScriptedClaude:
    """The port `AgentHome`, with the scripted agent as `claude`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.home = self.root / "home"
        self.config_dir = self.home / ".claude"
        self.config_file = self.home / ".claude.json"
        self.program = install_scripted_agent(self.root / "bin")
        self.config_dir.mkdir(parents=True, mode=0o700)
        self.config_file.write_text(json.dumps({"projects": {}}))

    def make_project(self, name: str) -> Path:
        """Make and trust a folder in the home; return its real path."""
        project = self.home / name
        project.mkdir(parents=True)
        config = json.loads(self.config_file.read_text())
        config["projects"][str(project.resolve())] = {"hasTrustDialogAccepted": True}
        self.config_file.write_text(json.dumps(config))
        return project

    def environment(self, **more: str) -> dict[str, str]:
        """Return the whole environment of a child."""
        return {
            "HOME": str(self.home),
            "USER": "dev",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "PATH": f"{self.program.parent}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            **more,
        }

    def start(
        self,
        *arguments: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> PtyProgram:
        """Start the agent as a person would."""
        return PtyProgram(
            [str(self.program), *arguments],
            directory=directory,
            environment=environment or self.environment(),
        )

    def registry(self) -> list[dict[str, Any]]:
        """Return the entries of the registry."""
        return read_registry(self.config_dir / "sessions")

    def transcripts(self) -> list[Path]:
        """Return every transcript."""
        return sorted(self.config_dir.glob("projects/*/*.jsonl"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the files to the test's own folder."""
