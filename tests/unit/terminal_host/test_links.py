"""Links in libghostty, which ends the process if a page of rows holds too many."""

import pytest

from terminal_host.host.ghostty.engine import GhosttyEngine
from terminal_host.host.ghostty.links import CELLS_LIMIT, LINKS_LIMIT

MOVED_ROWS = b"\x1b[H\x1b[1M\x1b[1;1H\x1b[1L\x1b[33;1H"
END = b"\x1b]8;;\x1b\\"


def engine() -> GhosttyEngine:
    return GhosttyEngine(188, 33, 1000)


def fill(tested: GhosttyEngine, line: bytes, *, lines: int = 240) -> bytes:
    for number in range(lines):
        tested.feed(line.replace(b"#", b"%d" % number) + b"\r\n")
        tested.feed(MOVED_ROWS)
    return tested.replay()


@pytest.mark.parametrize(
    "line",
    [
        b"\x1b]8;;http://a/b\x07" + b"x" * 188,
        b"\x1b]8;;http://a/b\x07x\x1b[187b",
        b"".join(b"\x1b]8;;http://a/#/%d\x07x" % n for n in range(94)) + END,
        b"".join(b"\x1b]8;id=#%d;http://a\x07x\x1b[m\x1b[4m" % n for n in range(94)),
        b"".join(b"\x1b\r]\x018;;http://#/%d\x07x" % n for n in range(94)),
        b"".join(b"\x1b]8;;http://#/%d\x1b[mx" % n for n in range(94)),
    ],
    ids=["cells", "repeated", "links", "ids", "controls within", "no end"],
)
def test_rows_full_of_links_can_be_moved(line: bytes) -> None:
    """The library ended the process here, and with it every terminal of the host."""
    painted = fill(engine(), line)
    assert painted.count(b"\x1b]8;;http") <= CELLS_LIMIT


def test_links_beyond_the_limit_are_text() -> None:
    tested = engine()
    for number in range(3 * LINKS_LIMIT):
        tested.feed(b"\x1b]8;;http://a/%d\x07<%d>" % (number, number) + END + b"\r\n")
    painted = tested.replay()
    assert b"<%d>" % (3 * LINKS_LIMIT - 1) in painted
    assert painted.count(b"\x1b]8;;http") <= LINKS_LIMIT


def test_links_that_are_gone_do_not_count() -> None:
    tested = engine()
    for number in range(5 * LINKS_LIMIT):
        tested.feed(b"\x1b[H\x1b]8;;http://a/%d\x07text" % number + END)
    last = b"http://a/%d" % (5 * LINKS_LIMIT - 1)
    assert last in tested.replay()


@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_a_link_counts_wherever_it_is_cut(end: bytes) -> None:
    """One that came in two pieces went by, and SGR 0 did not hide it."""
    stream = b"\x1b]8;;http://a/b" + end + b"one\x1b[mtwo"
    for cut in range(len(stream)):
        tested = engine()
        tested.feed(stream[:cut])
        tested.feed(stream[cut:])
        painted = tested.replay()
        assert painted.startswith(b"\x1b]8;;http://a/b\x1b\\one\x1b]8;;\x1b\\two"), cut


@pytest.mark.parametrize("cancel", [b"\x18", b"\x1a"])
def test_a_cancelled_link_is_none(cancel: bytes) -> None:
    tested = engine()
    tested.feed(b"\x1b]8;;http://a/b" + cancel + b"text")
    assert tested.replay().startswith(b"text")


def test_a_link_without_an_end_is_dropped_once_it_is_too_long() -> None:
    tested = engine()
    tested.feed(b"\x1b]8;;http://" + b"a" * 10_000)
    assert b"aaa" not in tested.replay()
    tested.feed(b"more\x07text")
    assert tested.replay().startswith(b"text")
