"""Discovery of a scratch home, as the tests of it open it."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.ids import HostId, SessionId, session_id
from tests.fakes.agent_records import CONVERSATION
from tests.fakes.processes import FakeProcesses
from tests.fakes.projects import FakeProjects

SECRET = b"s" * 32


def row_id(conversation: str = CONVERSATION) -> SessionId:
    """Return the row id of a conversation on the scratch machine."""
    return session_id("claude-code", conversation, machine_secret=SECRET)


class SilentNotifier:
    """A watch that stands, but never tells of anything."""

    def watch(
        self, debounce: int, step: int, timeout: int, stop: threading.Event
    ) -> Any:
        """Return when the watch is ended."""
        stop.wait()
        return "stop"

    def close(self) -> None:
        """Nothing is held."""


def silent(folders: list[str]) -> SilentNotifier:
    """Open a watch that never tells of anything."""
    return SilentNotifier()


Opener = Callable[..., AbstractAsyncContextManager[Discovery]]


@asynccontextmanager
async def _open(*config_dirs: Path, **more: Any) -> AsyncIterator[Discovery]:
    more.setdefault("projects", FakeProjects())
    more.setdefault("table", FakeProcesses())
    async with open_discovery(
        config_dirs=config_dirs,
        machine_secret=SECRET,
        host_id=HostId("host:test"),
        **more,
    ) as opened:
        yield opened


@pytest.fixture
def discovery() -> Opener:
    """Return `open_discovery` with fakes where a test names nothing else."""
    return _open
