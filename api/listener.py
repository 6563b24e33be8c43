"""The listening socket of `serve`, with what keeps a stopped reader from staying."""

import socket
from typing import Final

BACKLOG: Final = 2048
"""Connections that wait to be accepted: a thousand clients come back at once."""
SEND_BUFFER_BYTES: Final = 64 * 1024
"""What the kernel takes for a reader that stopped: some 1,400 feed messages less than
by default, which would hide it for minutes."""
UNREAD_PATIENCE_MS: Final = 10_000
"""How long sent bytes may stay unacknowledged (tcp(7), TCP_USER_TIMEOUT). Without it a
closing transport waits for a reader that never comes back."""


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket on *host* and *port* (0: any).

    The caller closes it. Accepted connections inherit its options. Raises `OSError`
    when the address is taken or is none of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; elsewhere pings must do
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_PATIENCE_MS
            )
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener
