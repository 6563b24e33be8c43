"""The record of a screen as bytes: what restores, and all that is refused."""

import struct
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from terminal_host.host.record_format import (
    META_LIMIT_BYTES,
    RecordInvalid,
    RecordTooLarge,
    decode_record,
    encode_record,
)
from terminal_host.screen import make_screen
from tests.fakes.records import NOON, make_record

FIXTURE = Path(__file__).with_name("data") / "version-1.screen"
HEADER_BYTES = 42
CHECKSUM_AT = 26
GOOD = encode_record(make_record(screen=b"\x1b[31mred\x1b[0m", continuation=b"\x1b[4"))


def resealed(data: bytes) -> bytes:
    """Return *data* with the checksum that it would have."""
    data = data[:CHECKSUM_AT] + bytes(16) + data[HEADER_BYTES:]
    digest = blake2b(data, digest_size=16).digest()
    return data[:CHECKSUM_AT] + digest + data[HEADER_BYTES:]


def patched(at: int, new: bytes) -> bytes:
    return resealed(GOOD[:at] + new + GOOD[at + len(new) :])


def with_meta(change: Callable[[bytes], bytes]) -> bytes:
    (length,) = struct.unpack_from(">I", GOOD, 14)
    meta = change(GOOD[HEADER_BYTES : HEADER_BYTES + length])
    rest = GOOD[HEADER_BYTES + length :]
    head = GOOD[:14] + struct.pack(">I", len(meta)) + GOOD[18:HEADER_BYTES]
    return resealed(head + meta + rest)


@given(screen=some.binary(max_size=300), continuation=some.binary(max_size=20))
def test_what_was_encoded_is_decoded(screen: bytes, continuation: bytes) -> None:
    record = make_record(screen=screen, continuation=continuation)
    assert decode_record(encode_record(record)) == record


def test_every_field_of_meta_comes_back() -> None:
    record = make_record(ended_at=NOON, exit_status=137, bell_at=NOON, name=None)
    assert decode_record(encode_record(record)) == record


def test_a_version_1_record_that_is_checked_in_restores() -> None:
    """durability 4: written once, never to be written again."""
    record = decode_record(FIXTURE.read_bytes())
    assert (record.meta.terminal_id, record.meta.name) == ("terminal:v1", "build")
    assert (record.meta.cols, record.meta.rows, record.meta.offset) == (60, 10, 4711)
    assert record.meta.ended_at is None
    assert record.continuation == b"\x1b[38;5"
    screen = make_screen(60, 10)
    screen.feed(record.screen)
    assert "marker of version 1 — 漢字" in screen.text(10)


DAMAGED = {
    "nothing": (b"", "short header"),
    "a short header": (GOOD[: HEADER_BYTES - 1], "short header"),
    "another magic": (patched(0, b"SIDESCRM"), "not a record"),
    "version 2": (patched(8, b"\0\2"), "format version 2"),
    "version 0": (patched(8, b"\0\0"), "format version 0"),
    "truncated": (GOOD[:-1], "lengths"),
    "over-long": (GOOD + b"x", "lengths"),
    "a wrong length": (patched(14, b"\xff\xff\xff\xff"), "lengths"),
    "no columns": (patched(10, b"\0\0"), "a size of 0 by 24"),
    "no rows": (patched(12, b"\0\0"), "a size of 80 by 0"),
    "too wide": (patched(10, b"\x01\xf5"), "a size of 501"),
    "meta without times": (with_meta(lambda _: b"{}"), "a time is missing"),
    "meta that is a list": (with_meta(lambda _: b"[]"), "meta"),
    "meta that is no JSON": (with_meta(lambda _: b"\xff"), "meta"),
    "an id that is a path": (
        with_meta(lambda meta: meta.replace(b"terminal:a", b"../../etc")),
        "meta",
    ),
    "no time": (
        with_meta(lambda meta: meta.replace(b'"started":"2', b'"started":"x')),
        "meta",
    ),
    "a time without zone": (
        with_meta(lambda meta: meta.replace(b"+00:00", b"")),
        "time zone",
    ),
    "a negative offset": (
        with_meta(lambda meta: meta.replace(b":5120", b":-1")),
        "meta",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_not_exactly_a_record_is_refused(name: str) -> None:
    """durability 4: each counts as absent."""
    data, reason = DAMAGED[name]
    with pytest.raises(RecordInvalid, match=reason):
        decode_record(data)


def test_no_flipped_bit_passes() -> None:
    """durability 4."""
    for at in range(len(GOOD)):
        for bit in range(8):
            flipped = bytearray(GOOD)
            flipped[at] ^= 1 << bit
            with pytest.raises(RecordInvalid):
                decode_record(bytes(flipped))


def test_no_truncated_file_passes() -> None:
    """durability 4: what a crash of the disk may leave."""
    for length in range(len(GOOD)):
        with pytest.raises(RecordInvalid):
            decode_record(GOOD[:length])


def test_the_bound_holds_in_both_directions() -> None:
    """durability 7."""
    record = make_record(screen=b"x" * 1000)
    size = len(encode_record(record))
    assert encode_record(record, limit_bytes=size)
    with pytest.raises(RecordTooLarge):
        encode_record(record, limit_bytes=size - 1)
    with pytest.raises(RecordInvalid, match="bound"):
        decode_record(encode_record(record), limit_bytes=size - 1)
    with pytest.raises(RecordTooLarge):
        encode_record(make_record(name="x" * META_LIMIT_BYTES))


def test_fields_a_newer_host_adds_are_ignored() -> None:
    newer = with_meta(lambda meta: b'{"colour":"red",' + meta[1:])
    assert decode_record(newer) == decode_record(GOOD)


def test_a_sandbox_that_was_not_written_down_counts_as_unknown() -> None:
    start = GOOD.index(b',"sandbox":')
    end = GOOD.index(b"}}") + 1
    without = with_meta(
        lambda meta: meta[: start - HEADER_BYTES] + meta[end - HEADER_BYTES :]
    )
    assert decode_record(without).meta.sandbox.kind == "unknown"
