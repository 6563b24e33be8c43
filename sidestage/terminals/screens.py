"""Parts of a terminal's screen, as queries show them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StyledRun:
    """Neighbouring cells of one line that are drawn alike."""

    text: str
    foreground: str | None = None
    """`#rrggbb`, an index of the 256-colour palette as a number, or the default."""
    background: str | None = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False

    @property
    def blank(self) -> bool:
        """Tell whether nothing of it is seen."""
        return not (
            self.text.strip() or self.background or self.underline or self.inverse
        )


StyledLine = tuple[StyledRun, ...]
"""One row of cells; blank cells at its end are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenMatch:
    """A place of a screen or its history where a text was found."""

    lines_from_end: int
    """1 is the last line. So many lines from the end begin with this one."""
    column: int
    """The character of *line* at which the text begins, from 0."""
    line: str
    """The whole line; long ones are cut around the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenMatches:
    """What a search found, the latest first."""

    matches: tuple[ScreenMatch, ...]
    more: bool
    """Whether there is more than was asked for."""
