"""The listening socket's options."""

import errno
import socket

import pytest

from api.listener import SEND_BUFFER_BYTES, UNREAD_PATIENCE_MS, open_listener


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_inherit_what_ends_a_reader_that_stopped(host: str) -> None:
    """Without it such a reader was still connected after 40 s, whatever the pings."""
    with open_listener(host, 0) as listener:
        listener.settimeout(5)
        with socket.create_connection(listener.getsockname()[:2]):
            connection, _ = listener.accept()
            with connection:
                patience = connection.getsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT
                )
                room = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    assert patience == UNREAD_PATIENCE_MS
    assert room <= 2 * SEND_BUFFER_BYTES  # Linux doubles it for its own needs


def test_an_address_that_is_taken_is_said_so() -> None:
    with open_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match="in use") as refused:
            open_listener("127.0.0.1", port)
    assert refused.value.errno == errno.EADDRINUSE
