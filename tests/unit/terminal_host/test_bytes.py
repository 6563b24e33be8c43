"""Rings, frames and characters: the bytes on their way."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal_host.gateway.output import OutputFramer, Window
from terminal_host.host.pace import FLOOD_TURN_BYTES, TYPING_TURN_BYTES, Pace
from terminal_host.host.ring import SMALL_CHUNK_BYTES, Ring
from terminal_host.utf8 import incomplete_suffix
from terminal_host.wire import (
    FRAME_LIMIT_BYTES,
    Frame,
    FrameDecoder,
    FrameInvalid,
    choose_version,
    encode_frame,
)


@given(st.lists(st.binary(max_size=6000), max_size=20), st.integers(1, 20000))
def test_a_ring_gives_what_it_holds_from_any_offset(
    pieces: list[bytes], limit: int
) -> None:
    ring, whole = Ring(limit), b""
    for piece in pieces:
        ring.append(piece)
        whole += piece
    assert ring.end == len(whole)
    assert ring.end - ring.start <= limit or ring.start == ring.end
    for offset in {ring.start, (ring.start + ring.end) // 2, ring.end}:
        assert ring.holds(offset)
        assert b"".join(ring.take(offset, len(whole) + 1)) == whole[offset:]
        assert b"".join(ring.take(offset, 100)) == whole[offset : offset + 100]
    assert not ring.holds(ring.end + 1)


def test_single_keys_do_not_become_a_million_chunks() -> None:
    ring = Ring(1 << 20)
    for _ in range(SMALL_CHUNK_BYTES):
        ring.append(b"x")
    assert len(ring.take(0, 1 << 20)) == 1


@given(st.text(), st.integers(0, 3))
def test_only_a_cut_character_is_incomplete(text: str, cut: int) -> None:
    data = text.encode("utf-8", "ignore")
    assert incomplete_suffix(data) == 0
    last = "🎉".encode()[: 4 - cut] if cut else b""
    assert incomplete_suffix(data + last) == len(last)


@pytest.mark.parametrize("data", [b"\xff", b"\x80\x80\x80\x80", b"\xc0", b"a\x80", b""])
def test_bytes_that_are_no_utf8_count_as_whole(data: bytes) -> None:
    assert incomplete_suffix(data) == 0


@given(st.text(min_size=1), st.data())
def test_frames_carry_their_offset_and_whole_characters(
    text: str, data: st.DataObject
) -> None:
    whole = text.encode("utf-8", "ignore")
    framer, position, sent = OutputFramer(1000), 0, b""
    while position < len(whole):
        step = data.draw(st.integers(1, 5))
        frame = framer.frame(whole[position : position + step])
        position += step
        if frame is not None:
            assert int.from_bytes(frame[:8], "big") == 1000 + len(sent)
            frame[8:].decode()
            sent += frame[8:]
    assert sent == whole
    assert framer.rest() is None


def test_a_character_that_is_never_ended_is_sent_at_the_end() -> None:
    framer = OutputFramer(0)
    assert framer.frame(b"\xe2\x80") is None
    assert framer.rest() == bytes(8) + b"\xe2\x80"
    assert framer.offset == 2


async def test_a_window_closes_at_its_limit_and_opens_with_an_ack() -> None:
    window = Window(limit_bytes=100)
    window.restart(1000)
    window.sent(1100)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await window.wait_open()
    assert window.acknowledged(1001)
    await window.wait_open()
    assert not window.acknowledged(1101)


async def test_a_repaint_supersedes_what_was_not_acknowledged() -> None:
    window = Window(limit_bytes=100)
    window.sent(100)
    window.restart(5000)
    await window.wait_open()
    assert window.acknowledged(50)  # an old one, still on its way


def test_a_key_shortens_the_turns_for_a_moment() -> None:
    now = [10.0]
    pace = Pace(lambda: now[0])
    assert pace.turn_bytes() == FLOOD_TURN_BYTES
    pace.note_input()
    assert pace.turn_bytes() == TYPING_TURN_BYTES
    now[0] += 0.06
    assert pace.turn_bytes() == FLOOD_TURN_BYTES


def test_frames_survive_any_split() -> None:
    message = {"op": "x", "value": "\udcff—", "n": 1}
    data = encode_frame(message) * 2 + b"raw"
    for step in (1, 3, len(data)):
        decoder = FrameDecoder()
        found: list[Frame] = []
        for start in range(0, len(data), step):
            decoder.feed(data[start : start + step])
            while len(found) < 2 and (frame := decoder.take()) is not None:
                found.append(frame)
        assert found == [message, message]
        assert decoder.take_rest() == b"raw"


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\0\0\0\x02[]", b"\0\0\0\x01{", b"\0\0\0\x02\xff\xff"],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    decoder = FrameDecoder()
    decoder.feed(data)
    with pytest.raises(FrameInvalid):
        decoder.take()


def test_a_frame_above_the_limit_is_never_sent() -> None:
    with pytest.raises(FrameInvalid):
        encode_frame({"text": "x" * FRAME_LIMIT_BYTES})


def test_the_newest_common_version_is_chosen() -> None:
    assert choose_version([1, 2]) == 2
    assert choose_version([3, 1]) == 1
    assert choose_version([99]) is None
    assert choose_version(["1", None]) is None
