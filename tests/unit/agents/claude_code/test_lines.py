from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents.claude_code.lines import Line, LineSplitter


def split(*chunks: bytes, limit_bytes: int = 1000) -> tuple[list[Line], LineSplitter]:
    splitter = LineSplitter(limit_bytes=limit_bytes)
    return [line for chunk in chunks for line in splitter.feed(chunk)], splitter


def test_only_a_line_feed_ends_a_line() -> None:
    """`splitlines` also cuts at U+2028, form feeds and others inside JSON strings."""
    text = "a\u2028b\x0bc\x85d\re\n".encode()
    lines, _ = split(text)
    assert [line.data for line in lines] == [text[:-1]]


def test_a_torn_last_line_is_left_for_later() -> None:
    lines, splitter = split(b"one\ntw")
    assert [line.data for line in lines] == [b"one"]
    assert splitter.consumed == 4
    assert splitter.has_torn_line
    assert [line.data for line in splitter.feed(b"o\n")] == [b"two"]
    assert splitter.consumed == 8


def test_an_over_long_line_costs_that_line_and_no_memory() -> None:
    """A line of 15 MB ended the reading, and all that followed was lost."""
    splitter = LineSplitter(limit_bytes=10)
    told = list(splitter.feed(b"before\n"))
    for _ in range(1000):
        told += splitter.feed(b"x" * 1000)
    assert sum(map(len, splitter._parts)) == 0
    told += splitter.feed(b"\nafter\n")
    assert [line.data for line in told] == [b"before", None, b"after"]
    assert told[1].length == 1_000_001
    assert told[2].offset == 7 + 1_000_001


def test_a_line_of_exactly_the_limit_is_read() -> None:
    lines, _ = split(b"x" * 10 + b"\n" + b"y" * 11 + b"\n", limit_bytes=10)
    assert [line.data for line in lines] == [b"x" * 10, None]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=10))
def test_where_chunks_are_cut_makes_no_difference(data: bytes, cuts: list[int]) -> None:
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[a:b] for a, b in pairwise(borders)]
    pieces, splitter = split(*chunks)
    whole, _ = split(data)
    assert pieces == whole
    assert (
        b"".join((line.data or b"") + b"\n" for line in whole)
        == data[: splitter.consumed]
    )
