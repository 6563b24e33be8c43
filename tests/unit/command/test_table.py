import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from sidestage.command.table import (
    Column,
    Shrink,
    make_lines,
    shrink_end,
    shrink_start,
)

COLUMNS = (
    Column("STATE"),
    Column("NAME", Shrink.END),
    Column("FOLDER", Shrink.START),
    Column("ID"),
)
WIDE_CHARACTERS = st.text("ab/漢é ", max_size=60)


def lines(width: int, *rows: tuple[str, ...]) -> list[str]:
    cells = [tuple(Text(text) for text in row) for row in rows]
    return [line.plain for line in make_lines(COLUMNS, cells, width=width)]


def test_a_table_is_as_wide_as_what_it_holds() -> None:
    assert lines(80, ("idle", "fix it", "/srv/p", "a1a1a1a1")) == [
        "STATE  NAME    FOLDER  ID",
        "idle   fix it  /srv/p  a1a1a1a1",
    ]


def test_only_names_and_folders_shrink_and_an_id_is_whole_at_80_columns() -> None:
    """At 80 columns, and in every pipe, ids were cut and could not be copied."""
    row = (
        "asking permission",
        "a name that goes on " * 4,
        "/home/somebody/somewhere/deep/down/in/code/app",
        "a1a1a1a1",
    )
    _, line = lines(80, row)
    assert cell_len(line) == 80
    assert line.split()[-2:] == ["…/deep/down/in/code/app", "a1a1a1a1"]
    assert line.startswith("asking permission  a name that goes on")


@given(WIDE_CHARACTERS, WIDE_CHARACTERS, st.integers(1, 120))
def test_the_first_and_last_column_are_whole_at_any_width(
    name: str, folder: str, width: int
) -> None:
    _, line = lines(width, ("unknown", name, folder, "0123abcd"))
    assert line.startswith("unknown  ")
    assert line.endswith("  0123abcd")


@pytest.mark.parametrize(
    ("folder", "cells", "shown"),
    [
        ("/srv/p", 6, "/srv/p"),
        ("/home/me/code/app", 12, "…/code/app"),
        ("/home/me/code/app", 10, "…/code/app"),
        ("/home/me/code/app", 9, "…/app"),
        ("/home/a-very-long-name", 9, "…ong-name"),
        ("/home/漢字漢字", 6, "…漢字"),
    ],
)
def test_a_folder_keeps_its_end(folder: str, cells: int, shown: str) -> None:
    assert shrink_start(folder, cells) == shown


@given(WIDE_CHARACTERS, st.integers(1, 40))
def test_what_is_shrunk_fits(text: str, cells: int) -> None:
    for shrink in (shrink_end, shrink_start):
        shown = shrink(text, cells)
        assert cell_len(shown) <= cells
        assert shown == text or "…" in shown
