"""The templates: the named command lines a terminal may run."""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sidestage.ids import TemplateId
from sidestage.sessions.model import AgentKind
from sidestage.terminals.desk import Template

CLAUDE_CODE: Final = TemplateId("template:claude-code")
CODEX: Final = TemplateId("template:codex")
SHELL: Final = TemplateId("template:shell")

FALLBACK_SHELL: Final = "/bin/sh"

TEMPLATE_IDS: Final = (CLAUDE_CODE, CODEX, SHELL)

TEMPLATE_OF_AGENT: Final[Mapping[AgentKind, TemplateId]] = {
    AgentKind.CLAUDE_CODE: CLAUDE_CODE,
    AgentKind.CODEX: CODEX,
}


class TemplateShelf:
    """The templates as they were found last; empty until the first `look`."""

    def __init__(self, find: Callable[[], tuple[Template, ...]]) -> None:
        """Take them from *find*, which may block."""
        self._find = find
        self.templates: tuple[Template, ...] = ()

    async def look(self) -> None:
        """Look for the programs anew: what was missing may be installed by now."""
        self.templates = await asyncio.to_thread(self._find)


def find_templates(*, path: str, shell: str | None) -> tuple[Template, ...]:
    """Return the templates, their programs looked for on *path*.

    *shell* is the owner's login shell (`$SHELL`), used if it exists.
    """
    own_shell = shell if shell and Path(shell).is_file() else FALLBACK_SHELL
    return (
        _template(
            CLAUDE_CODE,
            "Claude Code",
            "Anthropic's coding agent, in the project's folder.",
            AgentKind.CLAUDE_CODE,
            shutil.which("claude", path=path),
        ),
        _template(
            CODEX,
            "Codex",
            "OpenAI's coding agent, in the project's folder.",
            AgentKind.CODEX,
            shutil.which("codex", path=path),
            # Without it sessions live in a server that outlives the terminal.
            "--no-daemon",
        ),
        _template(
            SHELL, "Shell", "Your shell, in the project's folder.", None, own_shell
        ),
    )


def _template(
    id_: TemplateId,
    title: str,
    description: str,
    agent: AgentKind | None,
    program: str | None,
    *arguments: str,
) -> Template:
    return Template(
        id=id_,
        title=title,
        description=description,
        agent=agent,
        available=program is not None,
        argv=() if program is None else (program, *arguments),
    )
