"""A scratch owner whose terminals get private files."""

import json
from pathlib import Path

from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.ids import TerminalId
from sidestage.terminals.launch import PreparedAgent

TERMINAL = TerminalId("terminal:1")


class Owner:
    """A home with a project, and the maker of private files for it."""

    def __init__(self, root: Path) -> None:
        self.home = root.resolve() / "home"
        self.project = self.home / "project"
        self.config = self.home / ".claude"
        for folder in (self.project, self.config / "commands"):
            folder.mkdir(parents=True)
        (self.config / "settings.json").write_text("{}")
        self.config_file = self.home / ".claude.json"
        entry = {"hasTrustDialogAccepted": True}
        self.write(projects={str(self.project): entry}, mcpServers={})
        self.state = root.resolve() / "state"
        self.private = self.state / "terminals" / TERMINAL
        self.files = ClaudePrivateFiles(state_dir=self.state, home=self.home)

    def write(self, **values: object) -> None:
        """Make the owner's `.claude.json`."""
        self.config_file.write_text(json.dumps(values))

    def prepare(
        self,
        *,
        directory: Path | None = None,
        terminal_id: TerminalId = TERMINAL,
        config_dir: Path | None = None,
        transcript: Path | None = None,
    ) -> PreparedAgent:
        """Make a terminal's private files, by default in the project."""
        return self.files.prepare(
            terminal_id=terminal_id,
            directory=directory or self.project,
            config_dir=config_dir,
            transcript=transcript,
        )
