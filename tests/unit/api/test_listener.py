"""The listening socket's options."""

import errno
import os
import socket

import pytest

from api import listener
from api.listener import SEND_BUFFER_BYTES, UNREAD_PATIENCE_MS, open_listener
from sidestage.errors import SettingsInvalid


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_inherit_what_ends_a_reader_that_stopped(host: str) -> None:
    """Without it such a reader was still connected after 40 s, whatever the pings."""
    with open_listener(host, 0) as listening:
        listening.settimeout(5)
        with socket.create_connection(listening.getsockname()[:2]):
            connection, _ = listening.accept()
            with connection:
                patience = connection.getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT
                )
                room = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert patience == UNREAD_PATIENCE_MS
    assert room <= 2 * SEND_BUFFER_BYTES  # Linux doubles it for its own needs


def test_an_address_that_is_taken_is_said_so() -> None:
    with open_listener("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(SettingsInvalid, match=r"is taken\. Name another"):
            open_listener("127.0.0.1", port)


def test_an_address_of_another_machine_is_said_so() -> None:
    """Each failure was told as a port that is taken."""
    with pytest.raises(SettingsInvalid, match="no address of this machine"):
        open_listener("192.0.2.1", 0)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "may not listen on port 80"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENOBUFS, "Cannot listen on port 80 of 127.0.0.1: No buffer"),
    ],
)
def test_every_other_refusal_is_told_as_what_it_is(
    number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(host: str, port: int) -> socket.socket:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(listener, "_listen", refuse)
    with pytest.raises(SettingsInvalid, match=words):
        open_listener("127.0.0.1", 80)
