"""Cutting output into text and sequences, wherever it is split."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal_host import vt_stream
from terminal_host.vt_stream import (
    OSC_LIMIT_BYTES,
    SEQUENCE_LIMIT_BYTES,
    Splitter,
    Token,
    TokenKind,
)

STREAM = (
    b"a\x1b[31mb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x1bPq#1\x1b\\e\x1b_G\x1b\\f"
    b"\x1b(0g\x1b7h\xc2\x9b1mi\xc2\xa9j\x1b[3\x070mk\x1b[5\x18l\x1b]0;cut\x1b[2mm\x1b\x1b[1mn"
) + "— 漢 🎉".encode()


def split(*pieces: bytes) -> list[Token]:
    splitter = Splitter()
    return [token for piece in pieces for token in splitter.feed(piece)]


def joined(tokens: list[Token]) -> list[tuple[TokenKind, bytes]]:
    """Return kinds and bytes, neighbouring text put together."""
    result: list[tuple[TokenKind, bytes]] = []
    for token in tokens:
        if result and token.kind is TokenKind.TEXT is result[-1][0]:
            result[-1] = (TokenKind.TEXT, result[-1][1] + token.data)
        else:
            result.append((token.kind, token.data))
    return result


def test_each_kind_is_told_apart() -> None:
    kinds = [(token.kind, token.body) for token in split(STREAM) if token.body]
    assert kinds[:8] == [
        (TokenKind.CSI, b"31m"),
        (TokenKind.OSC, b"0;title"),
        (TokenKind.OSC, b"8;;http://x"),
        (TokenKind.STRING, b"P"),
        (TokenKind.STRING, b"_"),
        (TokenKind.ESCAPE, b"(0"),
        (TokenKind.ESCAPE, b"7"),
        (TokenKind.CSI, b"1m"),
    ]


def test_c1_controls_in_utf8_are_given_as_escapes() -> None:
    assert [t.data for t in split(b"\xc2\x9b6n\xc2\x9d0;t\xc2\x9c")] == [
        b"\x1b[6n",
        b"\x1b]0;t\x1b\\",
    ]


def test_controls_inside_a_sequence_come_before_it() -> None:
    assert [t.data for t in split(b"\x1b[3\x070m")] == [b"\x07", b"\x1b[30m"]


def test_a_split_anywhere_changes_nothing() -> None:
    whole = joined(split(STREAM))
    for cut in range(len(STREAM)):
        assert joined(split(STREAM[:cut], STREAM[cut:])) == whole, cut
    assert joined(split(*(bytes([byte]) for byte in STREAM))) == whole


@pytest.mark.parametrize("end", [b"\x18", b"\x1a", b"\x1b[0m"])
def test_a_string_that_is_ended_early_shows_nothing_of_itself(end: bytes) -> None:
    text = b"".join(t.data for t in split(b"\x1bPsecret" + end + b"x"))
    assert b"secret" not in text
    assert text.endswith(b"x")


def test_an_over_long_osc_is_dropped_to_its_end() -> None:
    long = b"\x1b]0;" + b"x" * (OSC_LIMIT_BYTES + 10)
    splitter = Splitter()
    assert list(splitter.feed(long)) == []
    assert splitter.held == b""
    assert splitter.skipping
    assert [t.data for t in splitter.feed(b"yz\x07after")] == [b"after"]


def test_an_over_long_csi_is_dropped_to_its_end() -> None:
    splitter = Splitter()
    assert list(splitter.feed(b"\x1b[" + b"1;" * SEQUENCE_LIMIT_BYTES)) == []
    assert [t.data for t in splitter.feed(b"3mafter")] == [b"after"]


def test_what_is_unfinished_is_held() -> None:
    splitter = Splitter()
    assert [t.data for t in splitter.feed(b"a\x1b[3")] == [b"a"]
    assert splitter.held == b"\x1b[3"


PIECES = st.sampled_from(
    [
        *(b"\x1b", b"[", b"]", b"P", b"^", b"\\", b"m", b"3", b";", b"?", b" ", b"("),
        *(b"\x07", b"\x18", b"\x1a", b"\n", b"\x7f", b"\xc2", b"\x9b", b"\xc2\x9d"),
        *(b"\xc2\x9c", b"\xc2\x90", b"a", "漢".encode(), b"\xff", b"\x1b\\", b"\x00"),
    ]
)
BYTES = st.one_of(st.binary(max_size=60), st.lists(PIECES, max_size=40).map(b"".join))


@given(BYTES, st.data())
def test_any_bytes_at_any_splits_give_the_same(
    stream: bytes, data: st.DataObject
) -> None:
    splits_change_nothing(stream, data)


LONG_PIECES = st.sampled_from(
    [
        b"\x1b]0123456",
        b"\x1b[1;2;3;4",
        b"\x1b(    (",
        b"\x1b" + bytes(6),
        b"\x1b\x00]01234",
    ]
)


@given(st.lists(st.one_of(PIECES, LONG_PIECES), max_size=20).map(b"".join), st.data())
def test_splits_do_not_decide_what_is_too_long(
    stream: bytes, data: st.DataObject
) -> None:
    """A sequence above its limit was given if it came whole, and dropped in pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vt_stream, "OSC_LIMIT_BYTES", 5)
        patch.setattr(vt_stream, "SEQUENCE_LIMIT_BYTES", 4)
        splits_change_nothing(stream, data)


@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\", b"\xc2\x9c"])
@pytest.mark.parametrize(("excess", "kinds"), [(0, ["OSC", "TEXT"]), (1, ["TEXT"])])
def test_the_longest_osc_is_given_and_a_longer_one_dropped(
    end: bytes, excess: int, kinds: list[str]
) -> None:
    content = b"x" * (OSC_LIMIT_BYTES - len(b"\x1b]") + excess)
    stream = b"\x1b]" + content + end + b"after"
    assert [token.kind for token in split(stream)] == kinds
    pieces = split(stream[:-12], *(bytes([byte]) for byte in stream[-12:]))
    assert joined(pieces) == joined(split(stream))


def splits_change_nothing(stream: bytes, data: st.DataObject) -> None:
    whole, pieces = Splitter(), Splitter()
    expected = joined(list(whole.feed(stream)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))
    edges = [0, *cuts, len(stream)]
    found = [
        token
        for start, end in pairwise(edges)
        for token in pieces.feed(stream[start:end])
    ]
    assert joined(found) == expected
    assert (pieces.held, pieces.skipping) == (whole.held, whole.skipping)
