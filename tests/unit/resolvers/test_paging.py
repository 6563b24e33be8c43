"""Pages over lists in memory, and the cursors that name places in them."""

import json
import random
from base64 import urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvers.paging import Order, Page, PageRequest, page_of
from sidestage.errors import BadUserInput
from tests.fakes.json_values import SCALARS, VALUES

ASCENDING: Order[tuple[str, str]] = Order("up", lambda row: row)
DESCENDING: Order[tuple[str, str]] = Order("down", lambda row: row, descending=True)
ROWS = [(f"{number // 3:03}", f"id{number}") for number in range(20)]


def page(order: Order[tuple[str, str]], **wish: str | int) -> Page[tuple[str, str]]:
    values = {"first": None, "after": None, "last": None, "before": None, **wish}
    request = PageRequest.of(**values)  # type: ignore[arg-type]  # a test's shorthand
    rows = list(ROWS)
    random.Random(1).shuffle(rows)
    return page_of(rows, order, request)


@pytest.mark.parametrize("order", [ASCENDING, DESCENDING])
@pytest.mark.parametrize("size", [1, 3, 7, 20, 50])
def test_paging_forwards_sees_each_row_once_in_order(
    order: Order[tuple[str, str]], size: int
) -> None:
    seen: list[tuple[str, str]] = []
    after: dict[str, str] = {}
    while True:
        rows = page(order, first=size, **after)
        assert rows.has_previous_page == bool(seen)
        seen += rows.nodes
        if not rows.has_next_page:
            break
        assert rows.end_cursor is not None
        after = {"after": rows.end_cursor}
    assert seen == sorted(ROWS, reverse=order.descending)


@pytest.mark.parametrize("order", [ASCENDING, DESCENDING])
@pytest.mark.parametrize("size", [1, 3, 7, 20, 50])
def test_paging_backwards_sees_each_row_once_in_order(
    order: Order[tuple[str, str]], size: int
) -> None:
    seen: list[tuple[str, str]] = []
    before: dict[str, str] = {}
    while True:
        rows = page(order, last=size, **before)
        assert rows.has_next_page == bool(seen)
        seen = [*rows.nodes, *seen]
        if not rows.has_previous_page:
            break
        assert rows.start_cursor is not None
        before = {"before": rows.start_cursor}
    assert seen == sorted(ROWS, reverse=order.descending)


@pytest.mark.parametrize("order", [ASCENDING, DESCENDING])
def test_a_cursor_whose_row_is_gone_still_names_its_place(
    order: Order[tuple[str, str]],
) -> None:
    gone = order.write_cursor(("003", "id9x"))
    rest = page(order, first=50, after=gone).nodes
    front = page(order, first=50, before=gone).nodes
    assert sorted((*front, *rest)) == sorted(ROWS)
    assert front
    assert rest


def test_between_two_cursors_lies_what_lies_between() -> None:
    rows = sorted(ROWS)
    after, before = (ASCENDING.write_cursor(rows[i]) for i in (2, 6))
    assert list(page(ASCENDING, after=after, before=before).nodes) == rows[3:6]
    assert page(ASCENDING, after=before, before=after).nodes == ()


def test_an_edge_is_a_row_with_its_cursor() -> None:
    rows = page(ASCENDING, first=2)
    assert [edge.node for edge in rows.edges] == list(rows.nodes)
    assert rows.page_info.start_cursor == rows.edges[0].cursor
    assert (
        page_of([], ASCENDING, PageRequest.of(1, None, None, None)).end_cursor is None
    )


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "ä",
        "W10",
        "bnVsbA",
        "A" * 3000,
        DESCENDING.write_cursor(ROWS[0]),
        "WyJ1cCIsMSwyXQ",
    ],
)
def test_a_cursor_of_another_list_or_made_up_is_bad_input(cursor: str) -> None:
    with pytest.raises(BadUserInput):
        page(ASCENDING, after=cursor)


@pytest.mark.parametrize(
    "wish",
    [
        {"first": 0},
        {"first": -1},
        {"first": 101},
        {"last": 0},
        {"last": 2**31},
        {"first": 1, "last": 1},
    ],
)
def test_page_sizes_that_make_no_sense_are_bad_input(wish: dict[str, int]) -> None:
    with pytest.raises(BadUserInput):
        page(ASCENDING, **wish)


def test_a_page_has_fifty_rows_unless_told_else() -> None:
    assert PageRequest.of(None, None, None, None).size == 50


PLACES = st.one_of(
    VALUES,
    st.lists(VALUES, min_size=3, max_size=3),
    st.tuples(st.sampled_from(["up", "down"]), SCALARS, SCALARS),
)


@given(st.one_of(st.text(max_size=60), PLACES.map(json.dumps)), st.booleans())
def test_any_cursor_is_a_place_or_bad_input(text: str, encoded: bool) -> None:
    cursor = urlsafe_b64encode(text.encode()).decode() if encoded else text
    for order in (ASCENDING, DESCENDING):
        for side in ("after", "before"):
            with suppress(BadUserInput):
                assert len(page(order, **{side: cursor}).nodes) <= len(ROWS)
