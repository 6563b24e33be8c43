import pytest

from terminal_host.gateway.local_attach import DetachKeys


def typed(*pieces: bytes) -> tuple[bytes, bool]:
    keys = DetachKeys()
    return b"".join(keys.feed(piece) for piece in pieces), keys.detached


@pytest.mark.parametrize(
    "prefix",
    [
        b"\x1d",
        # A program that asks for fuller key reports gets Ctrl-] like this, and nobody
        # could detach from it.
        b"\x1b[93;5u",
        b"\x1b[27;5;93~",
    ],
)
def test_the_prefix_and_d_detach_and_nothing_behind_them_is_sent(
    prefix: bytes,
) -> None:
    assert typed(b"ls" + prefix + b"d rm -rf") == (b"ls", True)
    assert typed(b"ls" + prefix, b"D") == (b"ls", True)


def test_the_prefix_twice_types_one_and_another_key_types_both() -> None:
    assert typed(b"\x1d\x1d") == (b"\x1d", False)
    assert typed(b"\x1dx") == (b"\x1dx", False)
    assert typed(b"d\x1b[A\xff") == (b"d\x1b[A\xff", False)
