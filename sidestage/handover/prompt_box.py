"""The agent's prompt box on a screen: what stands in it, and whether it is there.

Measured with Claude Code 2.1.328: the box stands between two lines of `─` and begins
with `❯`. A dialog has no such pair of lines, though it marks its choice with `❯` too.
"""

import re
from dataclasses import dataclass
from typing import Final

from sidestage.handover.turns import squeezed

_RULE: Final = re.compile(r"\s*─{8,}[^─]{0,60}─*\s*")
_PROMPT: Final = "❯"
_FOLDED: Final = re.compile(r"\[Pasted text #\d+(?: \+\d+ lines)?\]")
"""What the CLI shows in place of a long paste or one of many lines."""
_HINT: Final = re.compile(r'Try "|Press up to |Type ')
"""How a box without text may say what could be typed there."""


@dataclass(frozen=True, slots=True)
class PromptBox:
    """What stands in the box, its lines joined, and the size of its screen."""

    text: str
    cols: int = 80
    """How wide the screen is, by the rule above the box."""
    rows: int = 24

    @property
    def is_free(self) -> bool:
        """Whether nobody's text stands in it."""
        return not self.text or _HINT.match(self.text) is not None

    @property
    def is_folded(self) -> bool:
        """Whether it shows one folded paste in place of its text."""
        return _FOLDED.fullmatch(self.text) is not None

    def holds(self, typed: str) -> bool:
        """Tell whether it shows exactly *typed*.

        The box wraps lines and turns tabs into spaces: white space is not compared.
        """
        return bool(self.text) and squeezed(self.text) == squeezed(typed)

    def shows(self, typed: str) -> bool:
        """Tell whether it holds *typed*, or a paste that the CLI folded.

        A folded one proves itself only if the box was free before.
        """
        return self.holds(typed) or self.is_folded


def find_prompt_box(screen: str) -> PromptBox | None:
    """Return the box at the lower end of *screen*; None if a dialog hides it."""
    lines = screen.splitlines()
    rules = [index for index, line in enumerate(lines) if _RULE.fullmatch(line)]
    for upper, lower in zip(reversed(rules[:-1]), reversed(rules[1:]), strict=True):
        inside = lines[upper + 1 : lower]
        if inside and inside[0].lstrip().startswith(_PROMPT):
            first = inside[0].lstrip().removeprefix(_PROMPT)
            text = "\n".join((first, *inside[1:])).strip()
            return PromptBox(text, len(lines[upper].rstrip()), len(lines))
    return None
