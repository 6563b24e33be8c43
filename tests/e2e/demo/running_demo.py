"""A demonstration in a process of its own, and clients of its server."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.e2e.running_server import RunningServer

PAIR: Final = """mutation { createPairing(input: {}) {
  ... on CreatePairingPayload { link pairing { id } }
  ... on UserError { code message } } }"""
CONFIRM: Final = """mutation Confirm($input: ConfirmPairingInput!) {
  confirmPairing(input: $input) {
    ... on ConfirmPairingPayload { device { id } }
    ... on UserError { code message } } }"""


class Demo(RunningServer):
    """The server that the demonstration runs, found by what it prints."""

    def __init__(self, home: Path, temporary: Path) -> None:
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TMPDIR": str(temporary),
        }
        super().__init__(
            environment=environment, program=("-P", "-m", "sidestage", "demo")
        )
        self._temporary = temporary

    @property
    def stage(self) -> Path:
        """The scratch folder."""
        [stage] = self._temporary.glob("sidestage-demo-*")
        return stage


@contextmanager
def demo(home: Path) -> Iterator[Demo]:
    """Run a demonstration; make sure that it ends."""
    # Not below the test's own folder: that one may lie too deep for a Unix socket.
    with tempfile.TemporaryDirectory(prefix="stage-", dir="/tmp") as temporary:
        running = Demo(home, Path(temporary))
        running.start()
        running.state_dir = running.stage / "state"
        try:
            yield running
        finally:
            if running.is_running:
                running.stop()
