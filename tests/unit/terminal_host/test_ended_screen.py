"""What is shown of a terminal whose host went away."""

import pytest

from terminal_host.host.ended_screen import (
    LOST_NOTICE,
    exited_notice,
    show_ended,
)
from terminal_host.host.tail_screen import TailScreen
from terminal_host.screen import Engine, make_engine
from terminal_host.vt_filter import silence
from tests.fakes.records import make_record

MOUSE_AND_MORE = (1000, 1002, 1003, 1004, 1006, 2004, 2026)


def shown(
    output: bytes, *, size: tuple[int, int] = (80, 24), at: tuple[int, int] = (80, 24)
) -> Engine:
    """Return what a client of *size* sees, after a kill behind *output*."""
    screen = TailScreen(make_engine(*at))
    screen.feed(output)
    picture = screen.picture(1 << 22)
    assert picture is not None
    record = make_record(screen=picture.screen, cols=at[0], rows=at[1])
    client = make_engine(*size)
    client.feed(show_ended(record, LOST_NOTICE, size=size))
    return client


def bottom(client: Engine) -> str:
    runs = client.styled(1)[0]
    assert all(run.inverse for run in runs), runs
    return "".join(run.text for run in runs).rstrip()


def test_the_screen_is_kept_and_the_bottom_row_says_that_it_ended() -> None:
    """durability 1."""
    client = shown(b"marker\r\n$ ")
    assert client.text(24).startswith("marker")
    assert bottom(client) == LOST_NOTICE
    assert len(client.styled(1)[0][0].text) == 80


def test_it_visibly_is_no_live_shell() -> None:
    """durability 1: cursor hidden, mouse modes off."""
    modes = b"".join(b"\x1b[?%dh" % mode for mode in (*MOUSE_AND_MORE, 1))
    client = shown(b"$ " + modes)
    assert not client.mode(25, private=True)
    for mode in (*MOUSE_AND_MORE, 1):
        assert not client.mode(mode, private=True), mode


def test_the_last_lines_of_a_full_screen_are_not_covered() -> None:
    client = shown(b"".join(b"line %d\r\n" % n for n in range(50)) + b"$ last")
    rows = ["".join(run.text for run in line) for line in client.styled(24)]
    assert rows[22] == "$ last"
    assert rows[21] == "line 49"
    assert bottom(client) == LOST_NOTICE
    assert len(client.styled(1000)) == 52


def test_what_stands_below_the_cursor_is_not_covered_either() -> None:
    client = shown(b"top\r\n" + b"\r\n" * 22 + b"footer\x1b[5;1H")
    assert "footer" in client.text(2)
    assert bottom(client) == LOST_NOTICE


def test_an_alternate_screen_stays_one_and_is_not_scrolled() -> None:
    """durability 9."""
    rows = b"".join(b"\x1b[%d;1Hrow %d" % (n, n) for n in range(1, 25))
    client = shown(b"shell\r\n\x1b[?1049h" + rows)
    assert client.mode(1049, private=True)
    lines = ["".join(run.text for run in line) for line in client.styled(24)]
    assert lines[0] == "row 1"
    assert lines[22] == "row 23"
    assert bottom(client) == LOST_NOTICE
    client.feed(b"\x1b[?1049l")
    assert "shell" in client.text(24)


@pytest.mark.parametrize(
    "end",
    [
        b"\x1b",
        b"\x1b[",
        b"\x1b[38;5",
        b"\x1b]0;ti",
        b"\x1b]52;c;aGVs",
        b"\x1bP1$r",
        b"\x1b(",
        "漢".encode()[:1],
        "漢".encode()[:2],
        "\U0001f600".encode()[:3],
        b"\xc2",
    ],
)
def test_a_kill_within_a_sequence_or_character_leaves_the_notice_intact(
    end: bytes,
) -> None:
    """durability 10."""
    client = shown(b"marker " + end)
    assert client.text(24).startswith("marker")
    assert bottom(client) == LOST_NOTICE


@pytest.mark.parametrize(
    "state",
    [
        b"\x1b[3;5r",
        b"\x1b[3;5r\x1b[?6h",
        b"\x1b[4h",
        b"\x1b(0",
        b"\x0e\x1b)0",
        b"\x1b]8;;https://example.org\x1b\\link",
        b"\x1b[1;4;8;31;44m",
        b"\x1b[?7l",
        b"x" * 80,
        b"\x1b[20h",
        b"\x1b[?2026h",
    ],
)
def test_no_state_of_the_program_spoils_the_notice(state: bytes) -> None:
    """durability 10."""
    client = shown(b"marker" + state)
    assert client.text(24).startswith("marker")
    assert bottom(client) == LOST_NOTICE
    (run,) = client.styled(1)[0]
    assert (run.foreground, run.background, run.bold, run.underline) == (
        None,
        None,
        False,
        False,
    )


def test_the_notice_is_no_part_of_a_link() -> None:
    client = shown(b"\x1b]8;;https://example.org\x1b\\link")
    assert client.replay().count(b"https://example.org") == 1


def test_a_scroll_region_does_not_keep_the_last_line_from_being_seen() -> None:
    lines = b"".join(b"\x1b[%d;1Hrow %d" % (n, n) for n in range(1, 25))
    for state in (b"\x1b[3;5r", b"\x1b[3;5r\x1b[?6h", b"\x1b[4h", b"\x1b[20h"):
        client = shown(lines + state)
        rows = ["".join(run.text for run in line) for line in client.styled(24)]
        assert rows[:23] == [f"row {n}" for n in range(2, 25)]
        assert bottom(client) == LOST_NOTICE


@pytest.mark.parametrize("size", [(40, 10), (120, 50), (81, 24), (20, 3), (5, 2)])
def test_the_screen_is_reflowed_to_the_client(size: tuple[int, int]) -> None:
    """durability 2: and a narrow client's notice takes the rows that it needs."""
    client = shown(b"words " * 30 + b"\r\n$ end", size=size)
    assert client.size() == size
    text = client.text(size[1])
    notice = "".join(text.split())
    if size[0] * size[1] >= 2 * len(LOST_NOTICE):
        assert notice.endswith("".join(LOST_NOTICE.split()))
        assert "words words" in client.text(1000)
        assert "end" in client.text(1000)


def test_showing_asks_nothing_and_copies_nothing() -> None:
    """durability 15: also if the file was written by somebody else."""
    record = make_record(screen=b"a\x1b[6n\x1b[c\x07\x1b]52;c;aGk=\x07b")
    for size in (None, (80, 24), (40, 10)):
        data = show_ended(record, LOST_NOTICE, size=size)
        assert silence(data) == data
        assert b"\x1b[6n" not in data


def test_a_program_that_had_exited_has_a_notice_of_its_own() -> None:
    """durability 2a."""
    assert "status 3" in exited_notice(3)
    assert "status" not in exited_notice(None)
    assert exited_notice(0) != LOST_NOTICE


def test_a_record_without_a_screen_still_says_what_happened() -> None:
    client = make_engine(80, 24)
    client.feed(show_ended(make_record(screen=b""), LOST_NOTICE))
    assert client.text(24).strip() == LOST_NOTICE
