"""What is taken out of a replay, and of what `sidestage attach` shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal_host.gateway.attach_filter import AttachFilter
from terminal_host.vt_filter import StreamFilter
from terminal_host.vt_stream import Splitter

DANGEROUS = {
    "clipboard write": b"\x1b]52;c;aGk=\x07",
    "clipboard read": b"\x1b]52;c;?\x1b\\",
    "clipboard, C1": b"\xc2\x9d52;c;aGk=\xc2\x9c",
    "notification": b"\x1b]9;hello\x07",
    "notification of urxvt": b"\x1b]777;notify;a;b\x07",
    "file of iTerm": b"\x1b]1337;File=name=eA==:AAAA\x07",
    "directory": b"\x1b]7;file:///etc\x07",
    "icon title": b"\x1b]1;x\x07",
    "palette question": b"\x1b]4;1;?\x07",
    "foreground question": b"\x1b]10;?\x07",
    "background question": b"\x1b]11;?\x1b\\",
    "link to a program": b"\x1b]8;;ssh://x\x1b\\",
    "graphics of kitty": b"\x1b_Gi=1,a=q;AAAA\x1b\\",
    "remote control of kitty": b'\x1bP@kitty-cmd{"cmd":"ls"}\x1b\\',
    "pass-through of tmux": b"\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\",
    "sixel": b"\x1bPq#0;2;0;0;0\x1b\\",
    "setting question": b"\x1bP$qm\x1b\\",
    "capability question": b"\x1bP+q544e\x1b\\",
    "privacy message": b"\x1b^x\x1b\\",
    "start of string": b"\x1bXx\x1b\\",
    "device attributes": b"\x1b[c",
    "secondary attributes": b"\x1b[>0c",
    "tertiary attributes": b"\x1b[=c",
    "identify": b"\x1bZ",
    "status": b"\x1b[5n",
    "cursor position": b"\x1b[6n",
    "extended position": b"\x1b[?6n",
    "position, C1": b"\xc2\x9b6n",
    "colour scheme": b"\x1b[?996n",
    "mode question": b"\x1b[?2004$p",
    "version": b"\x1b[>q",
    "keyboard question": b"\x1b[?u",
    "key modifiers question": b"\x1b[?4m",
    "graphics question": b"\x1b[?1;1;0S",
    "title report": b"\x1b[21t",
    "size report": b"\x1b[18t",
    "pixel report": b"\x1b[14t",
    "window move": b"\x1b[3;0;0t",
    "parameters": b"\x1b[x",
    "checksum of the screen": b"\x1b[1;1;1;1;24;80*y",
    "presentation report": b"\x1b[1$w",
    "printer": b"\x1b[5i",
    "enquiry": b"\x05",
}
HARMLESS = {
    "text": "— 漢 🎉".encode(),
    "colours": b"\x1b[1;38;5;3m",
    "title": b"\x1b]2;a title\x07",
    "link": b"\x1b]8;id=1;https://example.org\x1b\\",
    "link's end": b"\x1b]8;;\x1b\\",
    "foreground": b"\x1b]10;#ffffff\x07",
    "cursor colour's reset": b"\x1b]112\x07",
    "alternate buffer": b"\x1b[?1049h",
    "scroll region": b"\x1b[2;5r",
    "charset": b"\x1b(0",
    "cursor shape": b"\x1b[5 q",
    "soft reset": b"\x1b[!p",
    "keyboard flags": b"\x1b[>1u",
    "title stack": b"\x1b[22;0t",
    "erase": b"\x1b[2J",
}


@pytest.mark.parametrize("sequence", DANGEROUS.values(), ids=DANGEROUS)
def test_what_acts_outside_the_screen_is_dropped_at_every_split(
    sequence: bytes,
) -> None:
    stream = b"before" + sequence + b"after"
    for cut in range(len(stream) + 1):
        filtered = AttachFilter()
        kept = filtered.feed(stream[:cut]) + filtered.feed(stream[cut:])
        assert kept == b"beforeafter", cut
    slow = AttachFilter()
    assert b"".join(slow.feed(bytes([byte])) for byte in stream) == b"beforeafter"


@pytest.mark.parametrize("sequence", HARMLESS.values(), ids=HARMLESS)
def test_what_only_draws_passes_at_every_split(sequence: bytes) -> None:
    stream = b"before" + sequence + b"after"
    for cut in range(len(stream) + 1):
        filtered = AttachFilter()
        assert filtered.feed(stream[:cut]) + filtered.feed(stream[cut:]) == stream, cut


def test_a_bell_rings_in_an_attached_terminal_but_not_in_a_replay() -> None:
    assert StreamFilter(keep_bell=True).feed(b"a\x07b") == b"a\x07b"
    assert StreamFilter(keep_bell=False).feed(b"a\x07b\x1b[3\x071m") == b"ab\x1b[31m"


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        (b"\x1b]52;c;aG", b"k=\x07"),
        (b"\x1b]52;c;aG\x1b", b"\\"),
        (b"\x1bPq#0", b";2\x1b\\"),
        (b"\x1b_Gi=1;AA\x1b", b"\\"),
        (b"\x1b]2;a ti", b"tle\x07"),
        (b"\x1b[3", b"1m"),
        (b"\x1b", b"[31m"),
        (b"\xe2\x80", b"\x94"),
    ],
)
def test_the_rest_of_a_cut_sequence_is_no_text(start: bytes, rest: bytes) -> None:
    """A replay ended before an OSC 52, and the clipboard's content was shown."""
    cut = StreamFilter(keep_bell=False)
    replay = cut.feed(b"x" + start) + cut.unfinished()
    whole = StreamFilter(keep_bell=True)
    wanted = whole.feed(b"x" + start + rest + b"y")
    seen = StreamFilter(keep_bell=True)
    assert seen.feed(replay + rest + b"y") == wanted


@pytest.mark.parametrize("end", range(5, len(b"\x1b]8;;https:")))
def test_a_link_that_is_cut_in_its_scheme_is_kept(end: int) -> None:
    """Cut there, it counted as one of a foreign scheme, and was no link any more."""
    cut = StreamFilter(keep_bell=False)
    start = b"\x1b]8;;HTTPS:"[:end]
    assert cut.feed(start) + cut.unfinished() == start


def test_a_restart_leaves_what_the_program_had_set() -> None:
    attached = AttachFilter()
    attached.feed(b"\x1b]52;c;half")
    begin = attached.restart()
    assert b"\x1b[?1049l" in begin
    assert attached.feed(b"text") == b"text"


@pytest.mark.parametrize(
    ("start", "kept"),
    [
        (b"\x1b[3\x07", b"\x1b[3"),
        (b"\x1b\x05\r", b"\x1b\r"),
        (b"\x1b\x07\r]52;c;aG", b"\r\x1b]9999;"),
        (b"\x1b\x07]2;a ti", b"\x1b]2;a ti"),
    ],
)
def test_controls_within_a_cut_sequence_are_looked_at(
    start: bytes, kept: bytes
) -> None:
    """A bell rang that stood inside the sequence a replay was cut in."""
    cut = StreamFilter(keep_bell=False)
    assert cut.feed(start) + cut.unfinished() == kept


CUT_OFF = (b"\x1b", b"\x1b[", b"\x1b[3", b"\x1b]52;c;aG", b"\x1bP1$r", b"\xc2", b"\x18")
PIECES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([*CUT_OFF, b"text", *DANGEROUS.values(), *HARMLESS.values()]),
)


@given(st.lists(st.lists(PIECES, max_size=8).map(b"".join), max_size=6))
def test_what_passes_in_bulk_is_what_passes_piece_by_piece(pieces: list[bytes]) -> None:
    """Half of `ESC [ c` passed, for a regular expression with nested possessives."""
    quick = StreamFilter(keep_bell=False)
    careful = StreamFilter(keep_bell=False)
    careful._splitter = Splitter()
    for piece in pieces:
        assert quick.feed(piece) == careful.feed(piece)
        assert quick.unfinished() == careful.unfinished()
