"""The listening socket of `serve`, with what keeps a stopped reader from staying."""

import errno
import socket
from typing import Final

from sidestage.errors import SettingsInvalid

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

    The caller closes it. Accepted connections inherit its options. Raises
    `SettingsInvalid` when the address cannot be had, with what to do.
    """
    try:
        return _listen(host, port)
    except OSError as error:
        raise SettingsInvalid(_why(host, port, error)) from error


def _why(host: str, port: int, error: OSError) -> str:
    """Say what keeps us from listening, and what to change."""
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken. Name another with --port."
    if error.errno in {errno.EACCES, errno.EPERM}:
        return (
            f"This user may not listen on port {port}. Name one above 1023 with --port."
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            f"{host} is no address of this machine. Name one with --host, such as "
            "127.0.0.1."
        )
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return "Too many files are open: raise the limit of the user (ulimit -n)."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."


def _listen(host: str, port: int) -> socket.socket:
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
