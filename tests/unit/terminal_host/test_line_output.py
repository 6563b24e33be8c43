"""Floods of lines: what left the history costs no engine, and nobody can tell."""

import random

import pytest

from terminal_host.host.fallback.engine import PyteEngine
from terminal_host.host.ghostty.engine import GhosttyEngine
from terminal_host.host.line_output import find_lines_end, last_lines
from terminal_host.host.live_screen import NOTHING, LiveScreen, Notices
from terminal_host.host.tail_screen import LINES_LIMIT_BYTES, TailScreen
from terminal_host.screen import SCROLLBACK_LINES

HISTORY_LINES = 20
STATES = (
    b"\x1b[2;5r",
    b"\x1b[r",
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[3;4Hhere",
    b"\x1b7",
    b"\x1b8",
    b"\x1b[?7l",
    b"\x1b[?7h",
    b"\x1b[4h",
    b"\x1b]8;;http://example.org/\x1b\\link",
    b"\x1b]8;;\x1b\\",
    b"\x1bPq a string",
    b"\x1b\\",
    b"\x1b[44m",
    b"\x1b[5",
    b"\xe2\x82",
)


class Counting(GhosttyEngine):
    """Counts what it is fed."""

    fed = 0

    def feed(self, data: bytes) -> None:
        self.fed += len(data)
        super().feed(data)


def some_lines(chance: random.Random) -> bytes:
    """Return text in colours, some of it wide and some longer than a row."""
    wide = "\u6f22 \u00e9".encode()
    words = (b"word ", wide, b"\t", b"\x1b[K", b"\x1b[1;38;5;9m", b"x" * 30)
    resets = (b"\x1b[0m\r\n", b"\x1b[m\r\n")
    ends = (b"\r\n",) * 8 + resets + (b"\r", b"\n", b"\b\r\n")
    most = chance.choice((1, 2, 4))
    return b"".join(
        chance.choice(words) * chance.randrange(most) + b"%d" % n + chance.choice(ends)
        for n in range(chance.randrange(400))
    )


def some_part(chance: random.Random) -> bytes:
    """Return states that lines meet, then lines."""
    states = b"".join(chance.choices(STATES, k=chance.randrange(3)))
    # Else strings and regions, which nothing ends by chance, would rule.
    over = chance.choice((b"", b"\x1b\\\x1b[?1049l\x1b[r"))
    return over + states + some_lines(chance)


@pytest.mark.parametrize("seed", range(6))
def test_a_screen_that_skips_lines_is_the_one_that_skips_none(seed: int) -> None:
    chance = random.Random(seed)
    engine = GhosttyEngine(24, 6, HISTORY_LINES)
    skipping = Counting(24, 6, HISTORY_LINES)
    screen = TailScreen(
        skipping,
        tail_limit_bytes=256,
        lines_limit_bytes=1500,
        history_lines=HISTORY_LINES,
    )
    total = 0
    for _ in range(30):
        part = some_part(chance)
        total += len(part)
        engine.feed(part)
        while part:
            count = chance.randrange(1, 700)
            screen.feed(part[:count])
            part = part[count:]
        screen.fold()
        assert skipping.replay() == engine.replay()
        assert skipping.cursor() == engine.cursor()
    assert skipping.fed < total


@pytest.mark.parametrize("kind", [GhosttyEngine, PyteEngine])
def test_a_screen_with_a_region_or_something_begun_does_not_scroll_whole(
    kind: type[GhosttyEngine | PyteEngine],
) -> None:
    for beginning in (b"\x1b[2;5r", b"\x1b[3", b"\xe2\x82", b"\x1bPq"):
        engine = kind(24, 6, HISTORY_LINES)
        assert engine.scrolls_whole()
        engine.feed(b"text\r\n" + beginning)
        assert not engine.scrolls_whole(), beginning


def test_a_flood_of_coloured_lines_costs_the_engine_a_fifth_of_it() -> None:
    screen = TailScreen(engine := Counting(80, 24, SCROLLBACK_LINES))
    flood = b"".join(
        b"\x1b[3%dmline %05d\x1b[0m %s\r\n" % (n % 8, n, b"x" * 40)
        for n in range(80_000)
    )
    for begin in range(0, len(flood), 50_001):
        screen.feed(flood[begin : begin + 50_001])
    screen.replay()
    assert engine.fed < len(flood) / 5


def test_what_waits_in_a_flood_is_bounded_and_no_replay_sends_it() -> None:
    screen = TailScreen(GhosttyEngine(80, 24, SCROLLBACK_LINES))
    for _ in range(64):
        screen.feed(b"a line of text\r\n" * 2000)
        assert len(screen._tail) <= LINES_LIMIT_BYTES
    assert len(screen.replay()) < 256 * 1024


@pytest.mark.parametrize(
    "data",
    [
        b"\x07",
        b"\x1b[H",
        b"\x1b]0;t",
        b"\x0e",
        b"\x7f",
        "\x9b".encode(),
        b"\x1bM",
        b"\x1b[?25h",
    ],
)
def test_what_acts_beyond_its_line_is_not_output_in_lines(data: bytes) -> None:
    assert find_lines_end(b"text\r\n" + data + b"text\r\n") is None


@pytest.mark.parametrize("rest", [b"\x1b", b"\x1b[", b"\x1b[38;5", b"\xc2"])
def test_what_may_be_more_than_a_colour_waits_for_its_end(rest: bytes) -> None:
    assert find_lines_end(b"text\r\n" + rest) == len(b"text\r\n")


def test_a_colour_without_an_end_is_none() -> None:
    assert find_lines_end(b"\x1b[" + b"1;" * 40) is None


def test_the_pen_of_lines_left_out_is_kept() -> None:
    lines = b"\x1b[0m\x1b[31mred\r\n\x1b[4mtwo\r\nthree\r\nfour"
    for cut in range(len(lines)):
        pieces = [lines[:cut], lines[cut:]]
        assert last_lines(pieces, 2).endswith(b"\x1b[31m\x1b[4m\r\nthree\r\nfour")
        assert last_lines(pieces, 4) == lines


def test_of_plain_lines_only_the_last_pieces_are_looked_at() -> None:
    pieces = [b"line\r\n"] * 50 + [b"a\r\nb\r\nc"]
    assert last_lines(pieces, 3) == b"\r\na\r\nb\r\nc"


def test_a_question_cut_behind_lines_is_answered_all_the_same() -> None:
    screen = LiveScreen(
        lambda cols, rows: GhosttyEngine(cols, rows, 100), cols=80, rows=24
    )
    assert screen.feed(b"\x1b[31mlines\r\n\x1b[") == NOTHING
    assert screen.feed(b"6n") == Notices(b"\x1b[2;1R", None, bell=False)
    assert screen.feed(b"\x1b]0;a ti") == NOTHING
    assert screen.feed(b"tle\r\nnone of it in lines") == NOTHING
    assert screen.feed(b"\x07") == Notices(
        b"", "a title none of it in lines", bell=False
    )
