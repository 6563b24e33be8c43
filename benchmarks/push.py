"""From a change of a CLI's file to a subscriber: the real server, a real WebSocket.

    .venv/bin/python -m benchmarks.push --sessions 200 --changes 200

Run it as an ordinary user. It makes a scratch home, starts `sidestage serve` on it,
subscribes to `outsideSessionFeed`, appends an answer to a random transcript, and takes
the time until the message with that row arrives. Changes do not overlap.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

from tests.e2e.running_server import RunningServer

FEED: Final = """subscription { outsideSessionFeed {
  kind more removedIds upserts { id lastMessage { text } }
} }"""
MEDIAN_BAR_MS: Final = 60
P95_BAR_MS: Final = 250
BASE: Final = {
    "parentUuid": None,
    "cwd": "/srv/project",
    "version": "2.1.328",
    "isSidechain": False,
    "userType": "external",
    "entrypoint": "cli",
}


def main() -> None:
    """Measure, and print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--changes", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="push-") as folder:
        home = Path(folder)
        files = [make_transcript(home, number) for number in range(options.sessions)]
        environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        with RunningServer(environment=environment) as server:
            times = measure(server, files, options.changes)
    times.sort()
    median, p95 = statistics.median(times), times[int(len(times) * 0.95)]
    print(f"{options.sessions} sessions, {options.changes} changes, milliseconds:")
    print(f"  median {median:6.1f}  (bar {MEDIAN_BAR_MS})")
    print(f"  p95    {p95:6.1f}  (bar {P95_BAR_MS})")
    print(f"  most   {times[-1]:6.1f}")


def measure(server: RunningServer, files: list[Path], changes: int) -> list[float]:
    """Return how long each change took to reach the subscriber, in milliseconds."""
    chance = random.Random(1)
    times = []
    with server.follow(FEED) as feed:
        feed.until(lambda: len(feed.rows) == len(files))
        for number in range(changes):
            text = f"answer {number}"
            began = time.perf_counter()
            append(chance.choice(files), answer(text))
            while not any(
                row["lastMessage"] and row["lastMessage"]["text"] == text
                for row in feed.next()["upserts"]
            ):
                pass
            times.append((time.perf_counter() - began) * 1000)
    return times


def make_transcript(home: Path, number: int) -> Path:
    """Write a transcript with one prompt; return its path."""
    folder = home / ".claude" / "projects" / "-srv-project"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{uuid.uuid4()}.jsonl"
    message = {"role": "user", "content": f"prompt {number}"}
    append(path, record(path, "user", message) | {"origin": {"kind": "human"}})
    return path


def answer(text: str) -> dict[str, object]:
    """Return the record of a model's answer."""
    content = [{"type": "text", "text": text}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "role": "assistant",
        "model": "bench",
        "content": content,
        "usage": usage,
    }
    return {"type": "assistant", "message": message}


def record(path: Path, kind: str, message: object) -> dict[str, object]:
    """Return a record of the conversation that *path* is named for."""
    return {"type": kind, "sessionId": path.stem, "message": message}


def append(path: Path, values: dict[str, object]) -> None:
    """Append a record as the CLI does: one line, in one write."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    line = BASE | {"uuid": str(uuid.uuid4()), "timestamp": now} | values
    line.setdefault("sessionId", path.stem)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
