"""Screens: both engines, the raw tail, and what a live one notices and answers."""

import random
from collections.abc import Callable

import pytest

from terminal_host.host.fallback.engine import PyteEngine
from terminal_host.host.ghostty.engine import GhosttyEngine
from terminal_host.host.live_screen import NOTHING, LiveScreen, Notices
from terminal_host.host.tail_screen import TAIL_LIMIT_BYTES, TailScreen
from terminal_host.screen import Engine, Screen, make_engine, make_screen
from terminal_host.vt_stream import Splitter, TokenKind

MakeEngine = Callable[[int, int], Engine]


def ghostty(cols: int, rows: int) -> Engine:
    return GhosttyEngine(cols, rows, 1000)


def pyte(cols: int, rows: int) -> Engine:
    return PyteEngine(cols, rows, 1000)


BOTH = pytest.mark.parametrize("make", [ghostty, pyte])

SHELL = (
    b"\x1b]2;a title\x07$ ls\r\n\x1b[1;34mdir\x1b[0m  \x1b[38;5;208mfile\x1b[0m\r\n"
    + b"".join(b"line %d\r\n" % n for n in range(60))
    + b"$ \x1b[4mhalf"
)
PROGRAM = (
    b"before\r\n\x1b[?1049h\x1b[H\x1b[2J\x1b[5;10Htext \x1b[7minverse\x1b[0m"
    b"\x1b[?25l\x1b[?2004h\x1b[?1006h\x1b[?1002h\x1b[2;20r\x1b[10;3H"
)


def cells(engine: Engine) -> tuple[object, ...]:
    """Return what can be compared of an engine without its own repaint."""
    return engine.text(1000), engine.cursor(), engine.size()


@BOTH
@pytest.mark.parametrize("stream", [SHELL, PROGRAM], ids=["shell", "program"])
def test_a_replay_gives_the_same_screen_at_every_cut(
    make: MakeEngine, stream: bytes
) -> None:
    for cut in range(0, len(stream), 7):
        engine, copy = make(80, 24), make(80, 24)
        engine.feed(stream[:cut])
        copy.feed(engine.replay())
        assert cells(copy) == cells(engine), cut
        engine.feed(stream[cut:])
        copy.feed(stream[cut:])
        assert cells(copy) == cells(engine), cut


@BOTH
def test_a_program_under_an_alternate_buffer_comes_back_to_the_shell(
    make: MakeEngine,
) -> None:
    engine, copy = make(80, 24), make(80, 24)
    engine.feed(PROGRAM)
    copy.feed(engine.replay())
    for number in (25, 1002, 1006, 1049, 2004):
        assert copy.mode(number, private=True) == engine.mode(number, private=True)
    copy.feed(b"\x1b[?1049l")
    assert "before" in copy.text(24)
    assert "inverse" not in copy.text(24)


def test_attributes_title_tabs_region_and_charset_are_replayed() -> None:
    engine = ghostty(40, 5)
    engine.feed(
        b"\x1b]2;t\x1b\\\x1b[3g\x1b[1;7H\x1bH\x1b[2;4r\x1b[3;3H\x1b(0\x1b[1;3;38;2;1;2;3mq"
    )
    replay, copy = engine.replay(), ghostty(40, 5)
    copy.feed(replay)
    for screen in (engine, copy):  # makes what is hidden visible
        screen.feed(b"q\tq\r\n\n\n\n\x1b(Bq")
    assert cells(copy) == cells(engine)
    for piece in (
        b"\x1b]2;t\x1b\\",
        b"\x1b[3g",
        b"\x1b[2;4r",
        b"\x1b(0",
        b"38;2;1;2;3",
    ):
        assert piece in replay


@pytest.mark.parametrize(
    "stream",
    [
        "漢字かな交じり文 e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 ".encode()
        * 30,
        b"\x1b]8;id=a;https://example.org\x1b\\linked\x1b]8;;\x1b\\ plain",
        b"\x1b[41m\x1b[2J\x1b[3;3Hred\x1b[48;5;200m\x1b[K",
        b"x" * 80,
        b"\x1b7\x1b[5;5H\x1b[31m\x1b7\x1b[H",
        b"\x1b[4h\x1b[?7l\x1b[?6h\x1b[20h\x1b=\x1b[5 q",
        b"\x1b[?47h alternate \x1b[?1h",
    ],
)
def test_a_replay_of_a_replay_is_the_same(stream: bytes) -> None:
    engine, copy = ghostty(80, 24), ghostty(80, 24)
    engine.feed(stream)
    copy.feed(engine.replay())
    assert copy.replay() == engine.replay()


@BOTH
def test_a_cut_character_is_continued(make: MakeEngine) -> None:
    engine, copy = make(20, 3), make(20, 3)
    engine.feed("—".encode()[:2])
    copy.feed(engine.replay() + "—".encode()[2:])
    assert copy.text(3).strip() == "—"


@BOTH
def test_no_bytes_break_an_engine(make: MakeEngine) -> None:
    """One byte 0xFF killed a neighbour's session thread for good."""
    seeded = random.Random(5)
    engine = make(80, 24)
    alphabet = bytes(range(256)) + b"\x1b[]?;0123456789hlmrnABCDHJKLMPSTXc\xff" * 40
    for _ in range(60):
        engine.feed(bytes(seeded.choices(alphabet, k=400)))
        engine.resize(seeded.randrange(1, 200), seeded.randrange(1, 60))
    copy = make(*engine.size())
    copy.feed(engine.replay())
    assert copy.text(5) is not None


def test_a_resize_reflows_as_xterm_does() -> None:
    engine = ghostty(20, 5)
    engine.feed(b"abcdefghijklmnopqrstuvwxyz\r\nnext")
    engine.resize(10, 5)
    assert engine.text(10).split("\n")[0].startswith("abcdefghij")
    copy = ghostty(10, 5)
    copy.feed(engine.replay())
    assert copy.replay() == engine.replay()


def test_an_endless_string_does_not_stop_replays() -> None:
    engine = ghostty(80, 24)
    engine.feed(b"shown\x1bP" + b"x" * 200_000)
    copy = ghostty(80, 24)
    copy.feed(engine.replay())
    assert copy.text(24).strip() == "shown"
    engine.feed(b"yyy\x1b\\after")
    assert "after" in engine.text(24)
    assert "yyy" not in engine.text(24)


@BOTH
def test_the_last_lines_are_text(make: MakeEngine) -> None:
    engine = make(80, 24)
    engine.feed(SHELL)
    assert engine.text(2).split("\n")[0] == "line 59"
    assert engine.text(0) == ""


@pytest.mark.parametrize("make", [make_engine, make_screen])
def test_what_is_made_is_a_screen(make: Callable[[int, int, int], Screen]) -> None:
    screen = make(80, 24, 100)
    screen.feed(b"text")
    screen.resize(40, 10)
    assert screen.text(1) == "text"


def test_the_tail_is_exact_and_bounded() -> None:
    screen = TailScreen(ghostty(80, 24))
    unknown = b"\x1b[1;1$rplain text\r\n"
    screen.feed(unknown)
    assert screen.replay().endswith(unknown)
    screen.feed(b"x" * 79 + b"\r\n" * TAIL_LIMIT_BYTES)
    assert len(screen.replay()) < TAIL_LIMIT_BYTES + 10_000


def test_a_full_history_is_replayed_without_the_tail() -> None:
    screen = TailScreen(ghostty(200, 50))
    for number in range(3000):
        screen.feed(b"\x1b[3%dm%s\r\n" % (number % 8, b"x" * 195))
    replay = screen.replay()
    assert len(replay) < 256 * 1024
    assert replay.count(b"x" * 195) >= 1000


def test_a_replay_asks_nothing_rings_nothing_and_writes_no_clipboard() -> None:
    screen = TailScreen(ghostty(80, 24))
    screen.feed(b"a\x1b[c\x1b[6n\x07\x1b]52;c;aGk=\x07\x1b]11;?\x07\x1bP$qm\x1b\\b")
    tokens = list(Splitter().feed(screen.replay()))
    assert {t.kind for t in tokens} <= {
        TokenKind.TEXT,
        TokenKind.CSI,
        TokenKind.CONTROL,
    }
    assert {t.data for t in tokens if t.kind is TokenKind.CONTROL} <= {b"\r", b"\n"}
    assert screen.replay().endswith(b"ab")


@pytest.mark.parametrize("half", [b"\x1b", b"\x1b[3", b"\x1b]2;tit", b"\xe2\x80"])
def test_a_replay_ends_with_what_is_unfinished(half: bytes) -> None:
    screen = TailScreen(ghostty(80, 24))
    screen.feed(b"text" + half)
    assert screen.replay().endswith(b"text" + half)
    screen.fold()
    assert screen.replay().endswith(half)


@pytest.mark.parametrize("make", [ghostty, pyte])
def test_an_engine_alone_keeps_what_is_unfinished_quiet(make: MakeEngine) -> None:
    """The ESC that begins a string's end made xterm.js act on the string before it."""
    engine = make(80, 24)
    engine.feed(b"text\x1b]52;c;aGk=\x1b")
    assert engine.replay().endswith(b"\x1b]9999;\x1b")


@pytest.mark.parametrize("keycap", ["1\ufe0f\u20e3", "#\ufe0f\u20e3"])
def test_a_keycap_keeps_its_variation_selector(keycap: str) -> None:
    """The library dropped it, so that the character before was drawn as text."""
    engine = ghostty(80, 24)
    engine.feed(f"{keycap} one".encode())
    assert f"{keycap} one".encode() in engine.replay()


def live(make: MakeEngine = ghostty) -> LiveScreen:
    return LiveScreen(make, cols=80, rows=24)


ASKED = {
    b"\x1b[c": b"\x1b[?1;2c",
    b"\x1b[0c": b"\x1b[?1;2c",
    b"\x1b[>c": b"\x1b[>0;276;0c",
    b"\x1b[5n": b"\x1b[0n",
    b"\x1b[3;7H\x1b[6n": b"\x1b[3;7R",
    b"\x1b[3;7H\x1b[?6n": b"\x1b[?3;7R",
    b"\x1b[5;10r\x1b[?6h\x1b[2;4H\x1b[6n": b"\x1b[2;4R",
    b"\x1b[>q": b"\x1bP>|sidestage(1)\x1b\\",
    b"\x1b[?2004h\x1b[?2004$p": b"\x1b[?2004;1$y",
    b"\x1b[?2004$p": b"\x1b[?2004;2$y",
    b"\x1b[?9999$p": b"\x1b[?9999;0$y",
    b"\x1b[?2027$p": b"\x1b[?2027;0$y",
    b"\x1b[4$p": b"\x1b[4;2$y",
    b"\x1b]10;?\x07": b"\x1b]10;rgb:ffff/ffff/ffff\x07",
    b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}


@pytest.mark.parametrize("make", [ghostty, pyte])
@pytest.mark.parametrize(("question", "wanted"), ASKED.items())
def test_questions_are_answered_once_at_every_split(
    make: MakeEngine, question: bytes, wanted: bytes
) -> None:
    for cut in range(len(question)):
        screen = live(make)
        given = [screen.feed(question[:cut]), screen.feed(question[cut:])]
        given.append(screen.feed(b"text"))
        answers = b"".join(notices.answers for notices in given if notices)
        assert answers == wanted, cut


@pytest.mark.parametrize("text", [b"\x1b[31mred", b"\x1b[?u", b"\x1b[5 q", b"\x1b[q"])
def test_what_asks_nothing_is_not_answered(text: bytes) -> None:
    assert live().feed(text) == NOTHING


def test_answers_come_in_the_order_of_the_questions() -> None:
    notices = live().feed(b"ab\x1b[6ncd\x1b[6n\x1b[5n")
    assert notices == Notices(b"\x1b[1;3R\x1b[1;5R\x1b[0n", None, bell=False)


def test_titles_and_bells_are_noticed() -> None:
    assert live().feed(b"\x1b]0;one\x07\x1b]2;two\x1b\\\x07") == Notices(
        b"", "two", bell=True
    )
    assert live().feed(b"\x1b]8;;http://x\x07") == NOTHING


def test_a_title_is_made_safe_to_show() -> None:
    notices = live().feed("\x1b]2;a\u202eb\x08\x07".encode())
    assert notices is not None
    assert notices.title == "a\ufffdb\ufffd"


def test_the_end_of_a_long_string_is_no_bell() -> None:
    screen = live()
    assert screen.feed(b"\x1b]1337;File=:" + b"x" * 9000) == NOTHING
    assert screen.feed(b"y" * 9000) == NOTHING
    assert screen.feed(b"z\x07") == NOTHING
    assert screen.feed(b"\x07") == Notices(b"", None, bell=True)


class Failing(PyteEngine):
    """An engine that breaks on one word."""

    def feed(self, data: bytes) -> None:
        if b"break" in data:
            raise RuntimeError("as the test wants")
        super().feed(data)


def test_an_engine_that_fails_starts_anew(caplog: pytest.LogCaptureFixture) -> None:
    screen = live(lambda cols, rows: Failing(cols, rows, 100))
    screen.feed(b"x\x1b[c break")
    screen.feed(b"\x1b[5n break \x1b[5n")
    notices = screen.feed(b"fine\x1b[5n")
    assert notices is not None
    assert notices.answers == b"\x1b[0n"
    assert "fine" in screen.text(5)
    assert caplog.text.count("a screen engine failed") == 1
