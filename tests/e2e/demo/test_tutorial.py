"""The app of docs/build-an-app.md, as it stands there, against a demonstration."""

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from tests.e2e.demo.running_demo import CONFIRM, PAIR, demo
from tests.waiting import wait_for

PAGE: Final = Path(__file__).parents[3] / "docs" / "build-an-app.md"
MINUTES_SECONDS: Final = 180.0
"""The demonstration's question comes within half a minute on an idle machine."""


def read_app() -> str:
    """Return the page's Python blocks, in their order."""
    return "\n\n".join(
        re.findall(
            r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
        )
    )


class App:
    """The app in a process; what it prints is kept line by line."""

    def __init__(self, folder: Path, link: str) -> None:
        program = folder / "app.py"
        program.write_text(read_app())
        self.process = subprocess.Popen(
            [sys.executable, str(program), link],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
        self.process.stdout.close()

    def printed(self, start: str) -> str | None:
        """Return the first line that begins so, without that beginning."""
        return next(
            (it.removeprefix(start) for it in self.lines if it.startswith(start)), None
        )

    def wait(self, start: str) -> str:
        """Return the rest of the first line that begins so, once there is one."""
        wait_for(
            lambda: self.printed(start) is not None or self.process.poll() is not None,
            f"the app prints {start!r}",
            seconds=MINUTES_SECONDS,
        )
        line = self.printed(start)
        assert line is not None, "\n".join(self.lines)
        return line


def test_a_newcomer_goes_from_pairing_to_an_answered_handover(tmp_path: Path) -> None:
    with demo(tmp_path) as running:
        pairing = running.query(PAIR)["createPairing"]
        app = App(tmp_path, pairing["link"])
        try:
            code = app.wait("code ")
            confirmed = running.query(
                CONFIRM,
                {"input": {"pairingId": pairing["pairing"]["id"], "code": code}},
            )
            assert "device" in confirmed["confirmPairing"], confirmed
            assert "run-tests" in app.wait("request Bash ")
            app.wait("answered request")
            assert app.wait("question ").startswith("Which of the two")
            app.wait("answered offer")
            app.wait("terminal shows the answer")
            app.wait("done")
            assert app.process.wait(MINUTES_SECONDS) == 0
        finally:
            app.process.kill()
            app.process.wait()
            app.reader.join()
