"""The mechanism of live lists: the ring, views of it, and cursors."""

import asyncio
import json
import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.errors import BadUserInput
from sidestage.feeds import (
    Feed,
    FeedView,
    Follows,
    Position,
    Rows,
    binding,
    read_cursor,
    write_cursor,
)
from tests.fakes.json_values import VALUES

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Lamp:
    id: str
    color: str
    seen: datetime = NOON
    room: str = ""


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def a_feed(*lamps: Lamp, ring_limit: int = 100) -> Feed[Lamp]:
    feed = Feed[Lamp](lambda lamp: lamp.id, ring_limit=ring_limit)
    for lamp in lamps:
        feed.upsert(lamp)
    return feed


def a_view(
    feed: Feed[Lamp],
    matches: Callable[[Lamp, datetime], bool] = lambda lamp, _: lamp.color == "red",
    **more: object,
) -> FeedView[Lamp]:
    return FeedView("lamps", feed, lambda lamp: lamp.id, matches, **more)  # type: ignore[arg-type]  # a test's shorthand


def told(rows: Rows[Lamp] | None) -> tuple[list[str], list[str]]:
    assert rows is not None
    return sorted(lamp.id for lamp in rows.upserts), sorted(rows.removed_ids)


def test_a_feed_keeps_values_and_tells_equal_ones_apart() -> None:
    feed = a_feed()
    assert feed.upsert(Lamp("a", "red"))
    assert not feed.upsert(Lamp("a", "red"))
    assert feed.upsert(Lamp("a", "blue"))
    assert feed.get("a") == Lamp("a", "blue")
    assert feed.remove("a")
    assert not feed.remove("a")
    assert feed.values() == ()
    assert feed.seq == 3


def test_changes_beyond_the_ring_or_of_the_future_are_not_known() -> None:
    feed = a_feed(*(Lamp(str(n), "red") for n in range(5)), ring_limit=3)
    assert feed.changes_after(1) is None
    assert feed.changes_after(6) is None
    assert feed.changes_after(-1) is None
    assert feed.changes_after(5) == ()
    assert [change.seq for change in feed.changes_after(2) or ()] == [3, 4, 5]


async def test_who_waits_is_woken_by_the_next_change() -> None:
    feed = a_feed()
    waiting = asyncio.ensure_future(feed.wait_beyond(0))
    await asyncio.wait({waiting}, timeout=0)
    assert not waiting.done()
    feed.upsert(Lamp("a", "red"))
    async with asyncio.timeout(5):
        await waiting


async def test_a_snapshot_holds_what_matches_now() -> None:
    view = a_view(a_feed(Lamp("a", "red"), Lamp("b", "blue")))
    assert told(await view.snapshot()) == (["a"], [])


async def test_changes_are_merged_by_id() -> None:
    feed = a_feed(Lamp("a", "red"), Lamp("b", "red"), Lamp("c", "blue"))
    view = a_view(feed)
    start = view.position()
    feed.upsert(Lamp("a", "red", room="x"))
    feed.upsert(Lamp("a", "red", room="y"))
    feed.remove("b")
    feed.upsert(Lamp("c", "green"))
    feed.upsert(Lamp("d", "red"))
    feed.remove("d")
    rows = await view.changes(start)
    assert told(rows) == (["a"], ["b"])
    assert rows is not None
    assert rows.upserts[0].room == "y"


async def test_only_rows_that_matched_before_are_removed() -> None:
    feed = a_feed(Lamp("a", "red"), Lamp("b", "blue"))
    view = a_view(feed)
    start = view.position()
    feed.upsert(Lamp("a", "blue"))
    feed.upsert(Lamp("b", "green"))
    feed.remove("b")
    assert told(await view.changes(start)) == ([], ["a"])


async def test_a_row_that_comes_to_match_is_put() -> None:
    feed = a_feed(Lamp("a", "blue"))
    view = a_view(feed)
    start = view.position()
    feed.upsert(Lamp("a", "red"))
    assert told(await view.changes(start)) == (["a"], [])


async def test_what_the_ring_forgot_or_another_run_wrote_starts_anew() -> None:
    feed = a_feed(*(Lamp(str(n), "red") for n in range(9)), ring_limit=3)
    view = a_view(feed)
    now = view.position()
    assert await view.changes(replace(now, seqs=(2,))) is None
    assert await view.changes(replace(now, epochs=("other",))) is None
    assert await view.changes(replace(now, seqs=(10,))) is None


def within(lamp: Lamp, at: datetime) -> bool:
    return at < lamp.seen + timedelta(minutes=1)


async def test_rows_leave_a_time_window_by_themselves() -> None:
    """Time filters are evaluated by a timer."""
    clock = Clock()
    feed = a_feed(Lamp("a", "red"), Lamp("b", "red", NOON + timedelta(seconds=30)))
    view = a_view(
        feed,
        within,
        leaves_at=lambda lamp: lamp.seen + timedelta(minutes=1),
        clock=clock,
    )
    start = view.position()
    clock.now += timedelta(seconds=59, milliseconds=995)
    async with asyncio.timeout(5):
        await view.wait(start)
    clock.now += timedelta(milliseconds=10)
    assert told(await view.changes(start)) == ([], ["a"])
    later = view.position()
    clock.now += timedelta(seconds=10)
    assert told(await view.changes(later)) == ([], [])
    clock.now += timedelta(minutes=10)
    assert told(await view.changes(start)) == ([], ["a", "b"])
    feed.upsert(Lamp("a", "red", clock.now))
    assert told(await view.changes(start)) == (["a"], ["b"])


async def test_without_a_row_to_leave_a_window_waits_for_changes_alone() -> None:
    feed = a_feed()
    view = a_view(feed, within, leaves_at=lambda lamp: lamp.seen, clock=Clock())
    waiting = asyncio.ensure_future(view.wait(view.position()))
    await asyncio.wait({waiting}, timeout=0.02)
    assert not waiting.done()
    feed.upsert(Lamp("a", "red"))
    async with asyncio.timeout(5):
        await waiting


async def test_a_row_is_told_again_when_what_it_shows_of_another_feed_changed() -> None:
    """A session shows its project's name: renaming the project changes the row."""
    rooms = a_feed(Lamp("room", "white"))
    feed = a_feed(Lamp("a", "red", room="room"), Lamp("b", "red", room="else"))

    def touched(id_: str) -> list[str]:
        return [lamp.id for lamp in feed.values() if lamp.room == id_]

    view = a_view(feed, follows=[Follows(rooms, touched)])
    start = view.position()
    waiting = asyncio.ensure_future(view.wait(start))
    rooms.upsert(Lamp("room", "black"))
    async with asyncio.timeout(5):
        await waiting
    assert told(await view.changes(start)) == (["a"], [])
    assert await view.changes(replace(start, seqs=(start.seqs[0], 99))) is None


async def test_a_filter_on_another_feed_removes_what_may_have_matched() -> None:
    """Whether a session is resumable hangs on its project, whose past is not kept."""
    rooms = a_feed(Lamp("room", "white"))
    feed = a_feed(Lamp("a", "red", room="room"))
    view = a_view(
        feed,
        lambda lamp, _: rooms.get(lamp.room) is not None,
        may_have_matched=lambda *_: True,
        follows=[Follows(rooms, lambda _: ["a"])],
    )
    start = view.position()
    rooms.remove("room")
    assert told(await view.changes(start)) == ([], ["a"])


def test_a_cursor_is_read_as_it_was_written() -> None:
    position = Position(("e", "f"), (5, 7), NOON, "mark")
    bound = binding("feed", "filter")
    assert read_cursor(write_cursor(bound, position), bound) == position


def test_a_cursor_of_another_feed_filter_or_scope_starts_anew() -> None:
    """api.md, line 7."""
    position = Position(("e",), (5,), NOON)
    cursor = write_cursor(binding("feed", "filter"), position)
    for other in (binding("feed", "other"), binding("feedfilter"), binding("filter")):
        assert read_cursor(cursor, other) is None


def test_a_cursor_within_a_snapshot_starts_anew() -> None:
    bound = binding("feed")
    cursor = write_cursor(bound, Position(("e",), (5,), NOON), unfinished=True)
    assert read_cursor(cursor, bound) is None


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "ä", "W10", "bnVsbA", "eyJhIjoxfQ", "WyJhIiwwLDFlOTk5LFtdLFtdLG51bGxd"],
)
def test_a_cursor_that_was_never_ours_is_bad_input(cursor: str) -> None:
    with pytest.raises(BadUserInput):
        read_cursor(cursor, binding("feed"))


async def test_any_client_ends_with_what_a_fresh_snapshot_shows() -> None:
    """A client that comes back at random, over 2,000 changes (api.md, line 7)."""
    chance = random.Random(7)
    clock = Clock()
    feed = a_feed(ring_limit=50)
    view = a_view(
        feed,
        lambda lamp, at: lamp.color == "red" and within(lamp, at),
        leaves_at=lambda lamp: lamp.seen + timedelta(minutes=1),
        clock=clock,
    )
    held: dict[str, Lamp] = {}
    cursor = ""
    for _ in range(2000):
        clock.now += timedelta(seconds=chance.random() * 3)
        id_ = str(chance.randrange(20))
        if chance.random() < 0.2:
            feed.remove(id_)
        else:
            feed.upsert(Lamp(id_, chance.choice(["red", "blue"]), clock.now))
        if chance.random() < 0.7:
            continue
        position = read_cursor(cursor, "b") if cursor else None
        # The cursor keeps milliseconds only: what is told may repeat, never be missing.
        rows = await view.changes(position) if position else None
        if rows is None:
            held, rows = {}, await view.snapshot()
        held |= {lamp.id: lamp for lamp in rows.upserts}
        for gone in rows.removed_ids:
            held.pop(gone, None)
        cursor = write_cursor("b", rows.position)
        fresh = await view.snapshot()
        assert held == {lamp.id: lamp for lamp in fresh.upserts}


BOUND = binding("feed")
OWN_CURSOR = json.loads(
    urlsafe_b64decode(write_cursor(BOUND, Position(("e",), (5,), NOON)) + "===")
)
MADE_UP = st.one_of(
    VALUES,
    st.tuples(st.sampled_from(range(len(OWN_CURSOR))), VALUES).map(
        lambda change: [
            change[1] if number == change[0] else value
            for number, value in enumerate(OWN_CURSOR)
        ]
    ),
    st.integers(-(10**16), 10**16).map(lambda at: [BOUND, 0, at, ["e"], [5], None]),
)


@given(st.one_of(st.text(max_size=60), MADE_UP))
async def test_any_cursor_is_a_place_a_new_start_or_bad_input(made_up: object) -> None:
    cursor = made_up if isinstance(made_up, str) else json.dumps(made_up)
    if not isinstance(made_up, str):
        cursor = urlsafe_b64encode(cursor.encode()).decode()
    try:
        position = read_cursor(cursor, BOUND)
    except BadUserInput:
        return
    feed = a_feed(Lamp("a", "red"), Lamp("b", "red"))
    view = a_view(feed, lambda lamp, at: lamp.seen <= at)
    view.leaves_at = lambda _: None
    if position is not None:
        since = replace(position, epochs=view.position().epochs)
        assert await view.changes(position) is None
        assert isinstance(await view.changes(since), Rows | None)
