"""Kills a writer of records by SIGKILL at every step of a write, again and again.

    python benchmarks/record_kills.py --rounds 200

Each round a process of its own replaces a record, or deletes it, and is killed at one
step. The next reader must find the old record or the new one, whole, and no leftovers.
Prints how often each was found; exits with 1 at the first mixture. A killed process
leaves the page cache intact: what a power cut takes, syncing is for, and the order of
the syncs is a unit test.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from sidestage.ids import TerminalId
from terminal_host.host.record_format import ScreenRecord
from terminal_host.host.records import RecordStore
from tests.fakes.records import make_record

TERMINAL = TerminalId("terminal:a")
SCREEN_BYTES = 200_000
PIECE_BYTES = 120_000
"""Written at a time, so that a record takes two writes."""
STEPS = {
    "opened": "before write 1",
    "half written": "before write 2",
    "written": "before fsync 1",
    "synced": "after fsync 1",
    "renamed": "after replace 1",
    "folder synced": "after fsync 2",
    "unlinked": "after unlink 1",
}
OLD_STEPS = ("opened", "half written", "written", "synced")
"""Killed there, the older record must be what is left."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    seeded = random.Random(options.seed)
    began = time.monotonic()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            step = tuple(STEPS)[number % len(STEPS)]
            found[f"{step}: {play(Path(folder), step, seeded)}"] += 1
    for what, count in sorted(found.items()):
        print(f"{count:5}  {what}")
    print(f"{options.rounds} kills in {time.monotonic() - began:.1f} s, no mixture")
    return 0


def play(folder: Path, step: str, seeded: random.Random) -> str:
    """Write, be killed at *step*, read; return which record was found."""
    old, new = (
        make_record(
            screen=seeded.randbytes(SCREEN_BYTES), offset=seeded.getrandbits(40)
        )
        for _ in range(2)
    )
    store = RecordStore(folder)
    store.open()
    store.save(old)
    pid = os.fork()
    if pid == 0:
        die_in_write(store, new, step)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"the writer was not killed at: {step}")
    listed = RecordStore(folder).open()
    leftovers = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    if len(listed) > 1 or leftovers:
        raise SystemExit(f"killed when {step}: {len(listed)} records, {leftovers}")
    return judge(RecordStore(folder).find(TERMINAL), old, new, step)


def judge(
    left: ScreenRecord | None, old: ScreenRecord, new: ScreenRecord, step: str
) -> str:
    """Return which record is left; ends the program if it is the wrong one."""
    expected = old if step in OLD_STEPS else None if step == "unlinked" else new
    if left != expected:
        raise SystemExit(f"killed when {step}: a record that should not be there")
    return "none" if left is None else "the old one" if left == old else "the new one"


def die_in_write(store: RecordStore, record: ScreenRecord, step: str) -> NoReturn:
    """Save *record*, then delete it, in a process that kills itself at *step*."""
    calls: Counter[str] = Counter()
    write = os.write
    os.write = lambda descriptor, data: write(
        descriptor, memoryview(data)[:PIECE_BYTES]
    )

    def watched(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*arguments: object, **options: object) -> object:
            calls[name] += 1
            die_if(STEPS[step] == f"before {name} {calls[name]}")
            result = call(*arguments, **options)
            die_if(STEPS[step] == f"after {name} {calls[name]}")
            return result

        return watch

    # Nothing is put back: this process does not live so long.
    for owner, name in (
        (os, "write"),
        (os, "fsync"),
        (Path, "replace"),
        (Path, "unlink"),
    ):
        setattr(owner, name, watched(name, getattr(owner, name)))
    store.save(record)
    store.remove(TERMINAL)
    os._exit(0)


def die_if(now: bool) -> None:  # noqa: FBT001  # reads as a sentence
    """Kill this process as a crash would."""
    if now:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
