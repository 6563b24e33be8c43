"""Bytes that no program would write, to see whether a screen survives them."""

import random
from collections.abc import Iterator
from typing import Final

from terminal_host.screen import Screen

PIECE_BYTES: Final = 4096
_WORDS: Final = (
    *(b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b", b"\x07", b"\x1b\\", b"\x18"),
    *(b"\x9b", b"\xc2\x9b", b"?", b";", b":", b"0", b"1", b"47", b"1049", b"65535"),
    *(b"h", b"l", b"m", b"H", b"J", b"K", b"L", b"M", b"S", b"T", b"b", b"r", b"q"),
    *(b"\r\n", b"\t", b"\b", b"\x0e", b"\x0f", b"text", b" ", b"\xe6\xbc\xa2", b"\xf0"),
    *(b"8;;http://a/b", b"$q", b"@", b"X", b"P", b"7", b"8", b"c", b"D", b"M", b"(0"),
)


def make_pieces(total_bytes: int, rng: random.Random) -> Iterator[bytes]:
    """Yield pieces of noise and of shuffled parts of sequences in turn."""
    made = 0
    while made < total_bytes:
        noise = rng.randbytes(PIECE_BYTES)
        words = b"".join(rng.choices(_WORDS, k=PIECE_BYTES // 2))
        for piece in (noise, words):
            made += len(piece)
            yield piece


def torment(screen: Screen, total_bytes: int, rng: random.Random) -> None:
    """Feed *screen* such bytes, resize it and ask it for repaints in between."""
    for number, piece in enumerate(make_pieces(total_bytes, rng)):
        screen.feed(piece)
        if number % 16 == 0:
            screen.resize(rng.randint(2, 200), rng.randint(2, 60))
        if number % 32 == 0:
            assert isinstance(screen.replay(), bytes)
            assert isinstance(screen.text(10), str)
