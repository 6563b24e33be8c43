"""The hooks of the scripted agent: commands from its settings files. Stdlib only."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEFAULT_TIMEOUT_SECONDS = 600


class Hooks:
    """Runs the command hooks that the settings files name, as the real one does."""

    def __init__(self, *settings_files: Path) -> None:
        self._files = settings_files

    def fire(self, event: str, fields: dict[str, Any]) -> None:
        """Run the hooks of *event* one after the other; what they say is ignored."""
        for command, timeout in self._find(event):
            with (
                contextlib.suppress(subprocess.TimeoutExpired),
                self._start(command, event, fields) as process,
            ):
                try:
                    process.communicate(timeout=timeout)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise

    def begin(
        self, event: str, fields: dict[str, Any]
    ) -> list[subprocess.Popen[bytes]]:
        """Start the hooks of *event*, which decide; the caller waits for them."""
        return [self._start(command, event, fields) for command, _ in self._find(event)]

    def _find(self, event: str) -> Iterator[tuple[str, float]]:
        for path in self._files:
            try:
                groups = json.loads(path.read_text()).get("hooks", {}).get(event, [])
            except (OSError, ValueError):
                continue
            for hook in (hook for group in groups for hook in group["hooks"]):
                if hook.get("type") == "command":
                    yield (
                        hook["command"],
                        hook.get("timeout", DEFAULT_TIMEOUT_SECONDS),
                    )

    @staticmethod
    def _start(
        command: str, event: str, fields: dict[str, Any]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "CLAUDECODE": "1",
                "CLAUDE_PID": str(os.getpid()),
                "CLAUDE_PROJECT_DIR": str(Path.cwd()),
                "CLAUDE_CODE_SESSION_ID": fields["session_id"],
            },
        )
        data = json.dumps({**fields, "hook_event_name": event}).encode()
        assert process.stdin is not None, "it is a pipe"
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(data)
            process.stdin.close()
        process.stdin = None
        return process


def read_decision(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """Return what a hook that ended decided, or None if it has no opinion."""
    assert process.stdout is not None, "it is a pipe"
    output = process.stdout.read()
    process.wait()
    try:
        decision: dict[str, Any] = json.loads(output)["hookSpecificOutput"]["decision"]
    except (ValueError, KeyError, TypeError):
        return None
    return decision
