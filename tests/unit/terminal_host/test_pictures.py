"""What a record holds of a screen, and its rows as styled runs."""

import pytest

from sidestage.terminals.screens import StyledRun
from terminal_host.host.fallback.engine import PyteEngine
from terminal_host.host.ghostty.engine import GhosttyEngine
from terminal_host.host.live_screen import LiveScreen
from terminal_host.host.tail_screen import Picture, TailScreen
from terminal_host.screen import Engine

ENOUGH = 1 << 22
BOTH = pytest.mark.parametrize("kind", [GhosttyEngine, PyteEngine])
Kind = type[GhosttyEngine] | type[PyteEngine]


def picture_of(screen: TailScreen, limit_bytes: int = ENOUGH) -> Picture:
    picture = screen.picture(limit_bytes)
    assert picture is not None
    return picture


@BOTH
@pytest.mark.parametrize(
    ("end", "continuation"),
    [
        (b"\x1b[38;5", b"\x1b[38;5"),
        ("é".encode()[:1], b"\xc3"),
        ("漢".encode()[:2], "漢".encode()[:2]),
        (b"\x1b]8;;http://x", b"\x1b]8;;http://x"),
        (b"\x1b]52;c;aGk", b"\x1b]9999;"),
        (b"", b""),
    ],
)
def test_what_is_unfinished_stands_in_a_field_of_its_own(
    kind: Kind, end: bytes, continuation: bytes
) -> None:
    """durability 10: the notice behind the screen must not continue it."""
    for folds in (False, True):
        screen = TailScreen(kind(20, 3, 100))
        screen.feed(b"text " + end)
        if folds:
            screen.fold()
        picture = picture_of(screen)
        copy = kind(20, 3, 100)
        copy.feed(picture.screen + b"notice")
        assert copy.text(3).strip() == "text notice"
        # The engine's own painting may have no use for what is dropped anyway.
        assert picture.continuation == continuation or folds


@BOTH
def test_live_bytes_continue_screen_and_continuation(kind: Kind) -> None:
    """durability 11."""
    screen = TailScreen(kind(20, 3, 100))
    screen.feed(b"one \x1b[3")
    picture = picture_of(screen)
    assert (picture.cols, picture.rows) == (20, 3)
    copy = kind(20, 3, 100)
    copy.feed(picture.screen + picture.continuation + b"1mtwo")
    assert copy.text(3).strip() == "one two"


@BOTH
def test_beyond_the_bound_the_oldest_history_is_left_out_first(kind: Kind) -> None:
    """durability 7."""
    screen = TailScreen(kind(80, 24, 1000))
    screen.feed(b"".join(b"line %d of many\r\n" % number for number in range(900)))
    whole = picture_of(screen)
    assert b"line 1 of" in whole.screen
    half = picture_of(screen, len(whole.screen) // 2)
    assert len(half.screen) <= len(whole.screen) // 2
    assert b"line 899 of" in half.screen
    assert b"line 1 of" not in half.screen
    assert b"line 800 of" in half.screen


@BOTH
def test_a_screen_that_alone_is_beyond_the_bound_has_no_picture(kind: Kind) -> None:
    """durability 7: rather none than a stale one."""
    screen = TailScreen(kind(80, 24, 1000))
    screen.feed(b"x" * 80 * 24)
    assert screen.picture(1000) is None
    assert screen.picture(4000) is not None


def test_a_screen_whose_engine_fails_is_pictured_empty() -> None:
    class Broken(GhosttyEngine):
        def replay(self, *, history_lines: int | None = None) -> bytes:
            if self.text(1):
                raise ValueError("broken")
            return super().replay(history_lines=history_lines)

    def make(cols: int, rows: int) -> Engine:
        return Broken(cols, rows, 100)

    screen = LiveScreen(make, cols=80, rows=24)
    screen.feed(b"text")
    screen.text(1)
    picture = screen.picture(ENOUGH)
    assert picture is not None
    assert b"text" not in picture.screen


@BOTH
def test_rows_are_given_as_runs_of_like_cells(kind: Kind) -> None:
    engine = kind(40, 4, 100)
    engine.feed(
        "gone\r\nkept\r\n\x1b[1;31mred 漢字\x1b[0m \x1b[3mx\x1b[0m   \r\n"
        "\x1b[7;4;38;2;1;2;3minv\x1b[0m\r\n".encode()
    )
    assert engine.styled(4) == (
        (StyledRun(text="kept"),),
        (
            StyledRun(text="red 漢字", foreground="1", bold=True),
            StyledRun(text=" "),
            StyledRun(text="x", italic=True),
        ),
        (StyledRun(text="inv", foreground="#010203", underline=True, inverse=True),),
        (),
    )
    assert engine.styled(5)[0] == (StyledRun(text="gone"),)
    assert len(engine.styled(1000)) == 5
    assert engine.styled(0) == ()


@BOTH
def test_a_background_is_shown_and_plain_blanks_are_not(kind: Kind) -> None:
    engine = kind(10, 2, 100)
    engine.feed(b"\x1b[44m  \x1b[0m  \x1b[95ma\x1b[0m   ")
    assert engine.styled(2)[0] == (
        StyledRun(text="  ", background="4"),
        StyledRun(text="  "),
        StyledRun(text="a", foreground="13"),
    )


def test_cells_that_were_skipped_or_hidden_are_blank() -> None:
    engine = GhosttyEngine(20, 2, 100)
    engine.feed(b"a\x1b[4Cb\x1b[8msecret\x1b[0mc")
    assert engine.styled(2)[0][0].text == "a    b      c"


def test_an_alternate_screen_has_no_history() -> None:
    for kind in (GhosttyEngine, PyteEngine):
        engine = kind(20, 2, 100)
        engine.feed(b"1\r\n2\r\n3\r\n\x1b[?1049h\x1b[Hfull")
        assert engine.styled(10) == ((StyledRun(text="full"),), ())
