"""Who may connect to the host."""

import os
import socket

import pytest

from terminal_host.host.server import is_owner


def test_a_process_of_the_same_user_may_connect() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_owner(ours)


def test_a_process_of_another_user_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.geteuid()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
        assert not is_owner(ours)
