"""Finding the sandbox of a process, where there is none."""

import os

import pytest

from terminal_host.host import sandbox_members
from terminal_host.host.sandbox_members import find_namespaces


def test_a_process_beside_us_is_in_no_sandbox() -> None:
    assert find_namespaces(os.getpid()) == frozenset()


def test_a_process_that_is_gone_is_in_none() -> None:
    assert find_namespaces(2**22 + 1) == frozenset()


def test_a_process_in_a_namespace_that_is_not_below_ours_is_in_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As for a container's process: the way up ends before it reaches us."""
    own = os.open("/proc/self/ns/user", os.O_RDONLY)
    other = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    opened = iter([other, None])
    monkeypatch.setattr(sandbox_members, "_open", lambda *_: next(opened))
    assert find_namespaces(1) == frozenset()
    os.close(own)
    os.close(other)
