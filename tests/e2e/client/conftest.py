"""A browser, and servers with sessions for it to show."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.client.seen import CHECKOUT
from tests.e2e.client.stage import Stage, open_stage
from tests.e2e.running_server import RunningServer

# A browser starts slowly where many tests run at once.
EXPECTED_WITHIN_MS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give the machine's Chromium, without a graphics card.

    Not for the whole session: Playwright keeps an event loop running in this thread,
    and every asynchronous test that came behind the browser's failed for it.
    """
    program = shutil.which("chromium")
    if program is None or not (CHECKOUT / "api" / "static" / "index.html").exists():
        pytest.fail("Run scripts/test --setup-only: it installs Chromium and builds.")
    with sync_playwright() as playwright:
        # Terminals are then drawn as elements, whose text a test can read.
        browser = playwright.chromium.launch(
            executable_path=program, args=["--disable-3d-apis"]
        )
        yield browser
        browser.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give a home with ended sessions; a test starts the live ones."""
    with open_stage(tmp_path) as stage:
        yield stage


@pytest.fixture
def server(stage: Stage) -> Iterator[RunningServer]:
    """Give a server on a port that it keeps over restarts, its projects registered."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = ["--port", str(port), "--no-sandbox"]
    environment = stage.agent.environment()
    with RunningServer(environment=environment, arguments=arguments) as server:
        for folder in stage.folders.values():
            server.register_project(folder)
        yield server


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Give a server with a session in every state, and many ended ones."""
    root = tmp_path_factory.mktemp("stage")
    with open_stage(root, ("asking", "question", "working", "idle")) as stage:
        stage.write_many(30)
        environment = stage.agent.environment()
        server = RunningServer(environment=environment, arguments=["--no-sandbox"])
        with server:
            for folder in stage.folders.values():
                server.register_project(folder)
            yield server
