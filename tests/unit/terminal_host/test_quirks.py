"""Each rule by which libghostty is made to act as xterm.js does."""

import pytest

from terminal_host.host.ghostty.engine import GhosttyEngine
from terminal_host.host.ghostty.pens import PLAIN, Pen, encode_pen, parse_pen, rgb
from terminal_host.host.ghostty.widths import from_library, to_library, xterm_width


def fed(stream: bytes, *, cols: int = 20, rows: int = 5) -> GhosttyEngine:
    engine = GhosttyEngine(cols, rows, 100)
    engine.feed(stream)
    return engine


def shown(stream: bytes) -> str:
    return fed(stream).text(200)


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"x" * 20 + b"\x1b[K", "x" * 20),  # nothing is behind the last column
        (b"xyz\x1b[2D\x1b[K", "x"),
        (b"ab\x1b[3b", "abbbb"),
        (b"ab\x1b[D\x1b[3b", "ab"),  # only what was printed just before
        (b"gone\r\nstays\x1b[S", "stays"),  # scrolled out, not into the history
        (b"a\x1b[T", "\na"),
        (b"abc\x1b]133;A\x07d", "abcd"),  # a shell's mark moves nothing
        (b"a\xff\xfeb\xc3(", "ab("),  # what is no UTF-8 is dropped
        (b"\xc2\x9b2;3Hx", "\n  x"),  # C1 controls act inside UTF-8
        (b"\x1b(0q\x1b(Bq", "─q"),
        (b"\x1b(0" + "é".encode() + b"q", "é─"),
        (b"\x1b)0\x0eq\x0fq", "─q"),
        (b"\x1b*0\x1bnq\x0fq", "─q"),
        (b"\x1b(0\x1b7\x1b(B\x1b8q", "─"),
        (b"\x1b(0q\x1bcq", "q"),
        (b"\x1b[2;2H\x1b[0Ax", " x"),  # a parameter of 0 counts as 1
        (b"ab\x1b[s\x1b[5;5H\x1b[ux", "abx"),
        (b"\x1b[?1049halternate\x1b[?1049lmain", "main"),
        (b"\x1b[?47hone\x1b[?47l\x1b[?47htwo", "   two"),  # it is always clear
    ],
)
def test_text_comes_out_as_in_xterm(stream: bytes, text: str) -> None:
    assert shown(stream).rstrip() == text
    # And at every split.
    for cut in range(1, len(stream)):
        engine = fed(stream[:cut])
        engine.feed(stream[cut:])
        assert engine.text(200).rstrip() == text, cut


@pytest.mark.parametrize(
    ("stream", "number", "is_set"),
    [
        (b"\x1b[?25l\x1bc", 25, False),  # a reset shows no hidden cursor
        (b"\x1bc", 25, True),
        (b"\x1b[?6h\x1b[?2004h\x1b[!p", 6, False),  # DECSTR resets all modes
        (b"\x1b[?6h\x1b[?2004h\x1b[!p", 2004, False),
        (b"\x1b[?2027h", 2027, False),  # it would change widths
        (b"\x1b[?1s\x1b[?1h\x1b[?1r", 1, True),  # no saving of modes
        (b"\x1b[?6h\x1b[?1049h\x1b[?1049l", 6, True),
        (b"\x1b[?1049h", 47, True),
    ],
)
def test_modes_are_as_in_xterm(stream: bytes, number: int, is_set: bool) -> None:
    assert fed(stream).mode(number, private=True) is is_set


def test_region_and_tabs_belong_to_a_buffer() -> None:
    replay = fed(b"\x1b[2;4r\x1b[3g\x1b[?1049h").replay()
    main, alternate = replay.split(b"\x1b[?47h")
    assert b"\x1b[2;4r" in main
    assert b"\x1b[3g" in main
    assert b"\x1b[2;4r" not in alternate
    assert b"\x1b[3g" not in alternate
    back = fed(b"\x1b[2;4r\x1b[3g\x1b[?1049h\x1b[?1049l").replay()
    assert b"\x1b[2;4r" in back
    assert b"\x1b[3g" in back


def test_a_link_is_hidden_by_a_reset_and_shown_by_an_underline() -> None:
    link = b"\x1b]8;;http://x\x1b\\"
    hidden = fed(link + b"a\x1b[0mb").replay()
    assert hidden.index(b"]8;;\x1b") < hidden.index(b"b")
    again = fed(link + b"\x1b[0m\x1b[4mc").replay()
    assert again.index(b"http://x") < again.index(b"c")


def test_the_saved_row_counts_from_the_top_of_the_history() -> None:
    engine = fed(b"\x1b[2;1H\x1b7\x1b[5;1H\n\n\x1b8")
    assert engine.cursor() == (0, 0)


def test_the_last_column_has_a_default_tab_stop() -> None:
    assert fed(b"\t\t\t\t", cols=17).cursor() == (16, 0)


def test_a_fill_of_new_lines_takes_no_background_when_scrolling_down() -> None:
    replay = fed(b"\x1b[41mx\x1b[T").replay()
    first = replay.split(b"\r\n")[0]
    assert b"X" not in first


def test_a_repaint_beyond_its_limit_drops_the_oldest_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("terminal_host.host.ghostty.engine.REPLAY_LIMIT_BYTES", 800)
    engine = fed(b"".join(b"line %d\r\n" % n for n in range(100)))
    replay = engine.replay()
    assert len(replay) <= 800
    assert b"line 99" in replay
    assert b"line 1\r\n" not in replay


def test_a_resize_keeps_the_rows_above_the_cursor() -> None:
    engine = fed(b"one\r\ntwo\x1b[5;1Hbelow\x1b[2;4H")
    engine.resize(20, 2)
    assert engine.text(2).split("\n") == ["one", "two"]
    engine.resize(9, 2)
    assert engine.cursor()[0] == 3


@pytest.mark.parametrize(
    "pen",
    [
        PLAIN,
        Pen(("1", "3", "53"), 1, 9, 3, 200),
        Pen((), 208, rgb(1, 2, 3), 1, rgb(4, 5, 6)),
        Pen(("7",), rgb(255, 0, 128), 15, 2),
    ],
)
def test_a_pen_survives_its_sequence(pen: Pen) -> None:
    pieces = encode_pen(pen)[2:-1].split(";")
    colours = encode_pen(pen)
    assert colours.startswith("\x1b[0")
    assert pieces[0] == "0"
    engine = fed(colours.encode() + b"x")
    assert colours.encode() in engine.replay() or pen == PLAIN


def test_a_pen_is_read_from_single_sequences() -> None:
    text = "\x1b[0m\x1b[1m\x1b[4:3m\x1b[31m\x1b[48;5;200m\x1b[58:2::1:2:3m\x1b[95m"
    assert parse_pen(text) == Pen(("1",), 13, 200, 3, rgb(1, 2, 3))
    assert parse_pen(text + "\x1b[0m\x1b[21m") == Pen(underline=2)


def test_characters_of_another_width_are_kept_as_stand_ins() -> None:
    flags = "\U0001f1e9\U0001f1ea"
    assert to_library(flags) != flags
    assert from_library(to_library("a" + flags)) == "a" + flags
    assert fed(flags.encode()).cursor()[0] == 2 * xterm_width(0x1F1E9)
    assert fed(flags.encode()).text(1) == flags
