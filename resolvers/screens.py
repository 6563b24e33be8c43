"""Parts of a terminal's screen, as GraphQL shows them."""

from typing import Annotated, Final

import strawberry

from resolvers.content import plain, textual
from resolvers.context import Info
from sidestage.errors import BadUserInput
from sidestage.terminals import model, screens
from sidestage.text import clean_text

SCREEN_LINES_LIMIT: Final = 1000
"""A tall screen and some of what scrolled away; more is the companion socket's job."""
SCREEN_LINES_DEFAULT: Final = 50
STYLED_LINES_LIMIT: Final = 200
"""Each run is an object with seven fields."""
MATCHES_LIMIT: Final = 100
MATCHES_DEFAULT: Final = 20
SEARCH_LIMIT_CHARACTERS: Final = 200
"""Longer than anyone types into a search box."""

Lines = Annotated[
    int,
    strawberry.argument(description="How many lines from the end; 1 to 1000."),
]
StyledLines = Annotated[
    int,
    strawberry.argument(description="How many rows from the end; 1 to 200."),
]
Wanted = Annotated[
    str,
    strawberry.argument(
        description="What to look for, taken literally, in either case; 1 to 200 "
        "characters."
    ),
]
Most = Annotated[
    int, strawberry.argument(description="How many matches at most; 1 to 100.")
]


@strawberry.type(description="Neighbouring cells of one line that are drawn alike.")
class StyledRun:
    """Neighbouring cells of one line that are drawn alike."""

    text: str = textual("Their characters.")
    foreground: str | None = plain(
        "The text's colour: `#rrggbb`, or a number from 0 to 255 of the terminal's "
        "palette; null for the default."
    )
    background: str | None = plain("The colour behind the text, likewise.")
    bold: bool = plain("Whether it is bold.")
    italic: bool = plain("Whether it is slanted.")
    underline: bool = plain("Whether it is underlined, in whatever way.")
    inverse: bool = plain("Whether foreground and background are exchanged.")


@strawberry.type(description="One row of a screen; blanks at its end are left out.")
class StyledLine:
    """One row of a screen."""

    runs: list[StyledRun] = plain("Its runs, from left to right.")


@strawberry.type(description="A place where a text was found.")
class ScreenMatch:
    """A place where a text was found."""

    lines_from_end: int = plain(
        "Which line it is: 1 is the last one. `screen(lines:)` with this number begins "
        "with it."
    )
    column: int = plain("The character of `line` at which the text begins, from 0.")
    line: str = textual("The whole line; a long one is cut around the text.")


@strawberry.type(description="What a search of a screen found.")
class ScreenMatches:
    """What a search of a screen found."""

    matches: list[ScreenMatch] = plain("The places, the latest first.")
    more: bool = plain("Whether there are more than were asked for.")


async def read_screen(
    info: Info,
    root: strawberry.Parent[model.Terminal],
    lines: Lines = SCREEN_LINES_DEFAULT,
) -> str | None:
    """Return the end of a terminal's screen as text."""
    _check("lines", lines, SCREEN_LINES_LIMIT)
    text = await info.context.parts.terminals.screen_text(root.id, lines=lines)
    return None if text is None else _clean(text)


async def read_styled_screen(
    info: Info,
    root: strawberry.Parent[model.Terminal],
    lines: StyledLines = SCREEN_LINES_DEFAULT,
) -> list[StyledLine] | None:
    """Return the end of a terminal's screen as runs."""
    _check("lines", lines, STYLED_LINES_LIMIT)
    read = await info.context.parts.terminals.screen_lines(root.id, lines=lines)
    if read is None:
        return None
    return [StyledLine(runs=[_run(run) for run in line]) for line in read]


async def search_screen(
    info: Info,
    root: strawberry.Parent[model.Terminal],
    text: Wanted,
    first: Most = MATCHES_DEFAULT,
) -> ScreenMatches | None:
    """Return where a text stands on a terminal's screen and in its history."""
    _check("first", first, MATCHES_LIMIT)
    if not 1 <= len(text) <= SEARCH_LIMIT_CHARACTERS:
        raise BadUserInput(f"text must have 1 to {SEARCH_LIMIT_CHARACTERS} characters.")
    terminals = info.context.parts.terminals
    found = await terminals.search_screen(root.id, text=text, limit=first)
    if found is None:
        return None
    matches = [
        ScreenMatch(
            lines_from_end=match.lines_from_end,
            column=match.column,
            line=_clean(match.line),
        )
        for match in found.matches
    ]
    return ScreenMatches(matches=matches, more=found.more)


def _run(run: screens.StyledRun) -> StyledRun:
    return StyledRun(
        text=_clean(run.text),
        foreground=run.foreground,
        background=run.background,
        bold=run.bold,
        italic=run.italic,
        underline=run.underline,
        inverse=run.inverse,
    )


def _clean(text: str) -> str:
    # Character for character, so that columns stay right.
    return clean_text(text, multiline=True)


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise BadUserInput(f"{name} must be from 1 to {most}.")
