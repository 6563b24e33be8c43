"""A Node process that seals and opens as a device, by other people's code."""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

NODE_MODULES: Final = Path(__file__).parents[3] / ".tools" / "node_modules"


class JavaScriptDevice:
    """Asks the process of `device.mjs`, whose head describes the requests."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a request; fail if the process has ended."""
        request = {"op": operation, **arguments}
        self._requests.write(json.dumps(request).encode() + b"\n")
        self._requests.flush()
        line = self._answers.readline()
        assert line, "the device has ended; its own message stands above"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def open_device() -> Generator[JavaScriptDevice]:
    """Run the process until the block ends."""
    if not (NODE_MODULES / "@hpke" / "core").is_dir():
        raise AssertionError(
            f"{NODE_MODULES} lacks @hpke/core: run scripts/test --setup-only."
        )
    script = Path(__file__).with_name("device.mjs")
    with subprocess.Popen(
        # WebCrypto's X25519 is marked as experimental until Node 24.
        ["node", "--no-warnings", str(script), str(NODE_MODULES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield JavaScriptDevice(process.stdin, process.stdout)
        process.stdin.close()
