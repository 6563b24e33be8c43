"""Discovery of a scratch home, as the tests of it open it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code.discovery import Discovery, open_discovery
from sidestage.ids import HostId
from tests.fakes.processes import FakeProcesses
from tests.fakes.projects import FakeProjects

SECRET = b"s" * 32

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
