"""xterm.js as the reference: a Node process that holds terminals and compares them."""

import base64
import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

NODE_MODULES: Final = Path(__file__).parents[2] / ".tools" / "node_modules"


class Oracle:
    """Asks the process of `oracle.mjs`, whose head describes the requests."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers

    def ask(self, request: dict[str, Any]) -> Any:
        """Return the answer to *request*; fail if the process has ended."""
        self._requests.write(json.dumps(request).encode() + b"\n")
        self._requests.flush()
        answer = self._answers.readline()
        assert answer, "the oracle has ended; its own message stands above"
        return json.loads(answer)

    def effects(self, data: bytes, *, cols: int = 80, rows: int = 24) -> list[str]:
        """Return what writing *data* makes an emulator do: answer, beep, copy."""
        request = {"kind": "effects", "cols": cols, "rows": rows, "data": encode(data)}
        effects: list[str] = self.ask(request)
        return effects


@contextmanager
def open_oracle() -> Generator[Oracle]:
    """Run the process until the block ends."""
    if not (NODE_MODULES / "@xterm" / "headless").is_dir():
        raise AssertionError(
            f"{NODE_MODULES} lacks @xterm/headless: run scripts/test --setup-only."
        )
    script = Path(__file__).with_name("oracle.mjs")
    with subprocess.Popen(
        ["node", str(script), str(NODE_MODULES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Oracle(process.stdin, process.stdout)
        process.stdin.close()


def encode(data: bytes) -> str:
    """Return *data* as the process takes bytes."""
    return base64.b64encode(data).decode()
