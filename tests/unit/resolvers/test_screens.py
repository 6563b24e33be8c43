"""Screens as text, as styled runs, and searched."""

from dataclasses import replace
from typing import Any

import pytest

from sidestage.ids import TerminalId
from sidestage.terminals.model import TerminalState
from sidestage.terminals.screens import (
    ScreenMatch,
    ScreenMatches,
    StyledLine,
    StyledRun,
)
from tests.fakes.parts import make_world
from tests.fakes.tokens import OPERATOR
from tests.fakes.values import a_terminal

STYLED = """query($n: Int!) { terminals(first: 5) { nodes { styledScreen(lines: $n) {
    runs { text foreground background bold italic underline inverse } } } } }"""
SEARCH = """query($text: String!, $n: Int!) { terminals(first: 5) { nodes {
    search(text: $text, first: $n) {
        more matches { linesFromEnd column line } } } } }"""


async def test_rows_are_shown_with_their_colours_and_styles() -> None:
    async with make_world().client() as client:
        [node] = (await client.data(STYLED, {"n": 2}))["terminals"]["nodes"]
    run = {
        "text": "run",
        "foreground": "#102030",
        "background": None,
        "bold": True,
        "italic": False,
        "underline": False,
        "inverse": True,
    }
    assert node["styledScreen"] == [{"runs": [run]}, {"runs": [run]}]


async def test_a_search_tells_lines_columns_and_whether_there_is_more() -> None:
    async with make_world().client() as client:
        data = await client.data(SEARCH, {"text": "word", "n": 2})
    [node] = data["terminals"]["nodes"]
    assert node["search"] == {
        "more": True,
        "matches": [
            {"linesFromEnd": 1, "column": 4, "line": "the word"},
            {"linesFromEnd": 2, "column": 4, "line": "the word"},
        ],
    }


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        (STYLED, {"n": 0}),
        (STYLED, {"n": 201}),
        (SEARCH, {"text": "word", "n": 0}),
        (SEARCH, {"text": "word", "n": 101}),
        (SEARCH, {"text": "", "n": 5}),
        (SEARCH, {"text": "x" * 201, "n": 5}),
    ],
)
async def test_what_is_beyond_the_bounds_is_refused(
    query: str, variables: dict[str, Any]
) -> None:
    async with make_world().client() as client:
        assert await client.code(query, variables) == "BAD_USER_INPUT"


async def test_a_lost_terminal_without_a_screen_has_nulls_and_no_error() -> None:
    lost = replace(a_terminal(1), state=TerminalState.LOST)
    async with make_world(terminals=(lost,)).client() as client:
        [styled] = (await client.data(STYLED, {"n": 5}))["terminals"]["nodes"]
        data = await client.data(SEARCH, {"text": "word", "n": 5})
    assert styled == {"styledScreen": None}
    assert data["terminals"]["nodes"] == [{"search": None}]


@pytest.mark.parametrize("field", ["styledScreen { __typename }", 'search(text: "a")'])
async def test_screens_need_the_scope_read(field: str) -> None:
    selection = field if "{" in field else field + " { more }"
    query = f"{{ terminals(first: 5) {{ nodes {{ {selection} }} }} }}"
    async with make_world().client(OPERATOR) as client:
        assert await client.code(query) == "PERMISSION_DENIED"


async def test_characters_that_lie_about_their_order_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, bidi = make_world(), "a \u202eb  c"

    async def text(terminal_id: TerminalId, *, lines: int) -> str:
        return bidi

    async def styled(terminal_id: TerminalId, *, lines: int) -> tuple[StyledLine, ...]:
        return ((StyledRun(text=bidi),),)

    async def found(terminal_id: TerminalId, *, text: str, limit: int) -> ScreenMatches:
        match = ScreenMatch(lines_from_end=1, column=3, line=bidi)
        return ScreenMatches(matches=(match,), more=False)

    monkeypatch.setattr(world.terminals, "screen_text", text)
    monkeypatch.setattr(world.terminals, "screen_lines", styled)
    monkeypatch.setattr(world.terminals, "search_screen", found)
    query = """{ terminals(first: 5) { nodes { screen styledScreen { runs { text } }
        search(text: "b") { matches { line } } } } }"""
    async with world.client() as client:
        [node] = (await client.data(query))["terminals"]["nodes"]
    clean = "a \ufffdb  c"
    assert node == {
        "screen": clean,
        "styledScreen": [{"runs": [{"text": clean}]}],
        "search": {"matches": [{"line": clean}]},
    }
