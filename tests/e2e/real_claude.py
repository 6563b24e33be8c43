"""The real Claude Code in a home of its own, answered by the stub model.

    def test_x(tmp_path: Path) -> None:
        with RealClaude.create(tmp_path) as claude:
            project = claude.make_project("project")
            with claude.start("hello", directory=project) as terminal:
                terminal.wait_for("Stub answer to: hello")
                terminal.send("/exit\\r")
                assert terminal.wait_end() == 0

What a prompt makes the model answer stands in `tests/fakes/stub_scenarios.py`.
`claude.home` is the scratch HOME: its `.claude.json` has every gate open that would
stop a first start (onboarding, key approval, auto mode) and `make_project` trusts the
folder it makes. `claude.environment()` is the whole environment of a child; nothing of
the developer's own gets in. `claude.registry()` reads `~/.claude/sessions`.

The program is `$SIDESTAGE_TEST_CLAUDE`, else `.tools/node_modules/.bin/claude` in the
checkout (`npm install --prefix .tools @anthropic-ai/claude-code@2.1.328`).
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.e2e.pty_program import PtyProgram
from tests.fakes.stub_model import StubModel

Json = dict[str, Any]
CHECKOUT: Final = Path(__file__).resolve().parents[2]
API_KEY: Final = "sk-ant-dummy-key-for-the-stub-000000"
READY: Final = r"❯"
"""The prompt box of the CLI stands on the screen."""


def find_claude() -> Path:
    """Return the real CLI; fails the test with a sentence when there is none."""
    named = os.environ.get("SIDESTAGE_TEST_CLAUDE")
    program = Path(named or CHECKOUT / ".tools/node_modules/.bin/claude")
    if not program.exists():
        raise AssertionError(
            f"There is no Claude Code at {program}. Set SIDESTAGE_TEST_CLAUDE, or "
            "npm install --prefix .tools @anthropic-ai/claude-code@2.1.328"
        )
    return program


class RealClaude:
    """The CLI, a scratch home below *root*, and the model it talks to."""

    def __init__(self, root: Path, model: StubModel) -> None:
        self.program = find_claude()
        self.model = model
        self.root = root.resolve()
        self.home = self.root / "home"
        self.config_dir = self.home / ".claude"
        self.config_file = self.home / ".claude.json"

    @classmethod
    def create(cls, root: Path) -> Self:
        """Make the home; the model runs while the `with` block lasts."""
        claude = cls(root, StubModel())
        claude.config_dir.mkdir(parents=True, mode=0o700)
        claude.write_settings({"permissions": {"defaultMode": "default"}})
        claude.config_file.write_text(json.dumps(_open_gates()))
        return claude

    def make_project(self, name: str) -> Path:
        """Make and trust a folder in the home; return its real path."""
        project = self.home / name
        project.mkdir(parents=True)
        (project / "README.md").write_text("# A demo\n")
        self.trust(project)
        return project

    def trust(self, project: Path) -> None:
        """Answer the trust dialog of *project* beforehand."""
        config = self.read_config()
        entry = {"hasTrustDialogAccepted": True, "allowedTools": []}
        config["projects"][str(project.resolve())] = entry
        self.config_file.write_text(json.dumps(config))

    def write_settings(self, settings: Json) -> None:
        """Write `~/.claude/settings.json`."""
        (self.config_dir / "settings.json").write_text(json.dumps(settings))

    def read_config(self) -> Json:
        """Return `.claude.json`."""
        config: Json = json.loads(self.config_file.read_text())
        return config

    def environment(self, **more: str) -> dict[str, str]:
        """Return the whole environment of a child: no variable of the developer's."""
        return {
            "HOME": str(self.home),
            "USER": "dev",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "PATH": f"{self.program.parent}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            **more,
        }

    def start(
        self,
        *arguments: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> PtyProgram:
        """Start the TUI as a person would, outside of any sandbox.

        It asks before risky tools, whatever the newest default is.
        """
        return PtyProgram(
            [str(self.program), "--permission-mode", "manual", *arguments],
            directory=directory,
            environment=environment or self.environment(),
        )

    def registry(self) -> list[Json]:
        """Return the entries of `~/.claude/sessions`, without torn ones."""
        return read_registry(self.config_dir / "sessions")

    def transcripts(self) -> list[Path]:
        """Return every transcript of every project."""
        return sorted(self.config_dir.glob("projects/*/*.jsonl"))

    def __enter__(self) -> Self:
        self.model.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.model.__exit__(kind, error, trace)


def read_registry(folder: Path) -> list[Json]:
    """Return the entries of a registry folder; one that is just written is left out."""
    entries = []
    for path in sorted(folder.glob("*.json")):
        try:
            entries.append(json.loads(path.read_text()))
        except (ValueError, FileNotFoundError):
            continue
    return entries


def _open_gates() -> Json:
    """Return a `.claude.json` that asks nothing at the start."""
    return {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "hasSeenAutoDefaultNotice": True,
        "hasSeenAutoDefaultNudge": True,
        # The CLI knows an approved key by its last twenty characters.
        "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
        "projects": {},
    }
