"""A screen engine by itself: feed rates, repaints, and 20 MB of random bytes."""

import random
import statistics
import time
from collections.abc import Iterator
from typing import Final

from terminal_host.screen import Engine, make_engine, make_screen
from tests.fidelity.cases import list_cases
from tests.fidelity.random_bytes import torment

PIECE_BYTES: Final = 1 << 16
FED_BYTES: Final = 8_000_000
ROUNDS: Final = 3
TORMENT_BYTES: Final = 20_000_000


def measure_feed() -> Iterator[tuple[str, float, str]]:
    """Yield what is fed, MB/s, and the bar."""
    text = b"".join(b"%06d " % n + b"word " * 14 + b"\r\n" for n in range(2000))
    yield "feed, text of 80 columns", _feed(text, 80, 24), ">= 50"
    redraws = [c for c in list_cases() if c.name in ("recorded/ink", "recorded/vim")]
    agents = [case for case in list_cases(["agents"]) if case.cols == 120]
    for case in redraws:
        name = f"feed, {case.name} again and again"
        yield name, _feed(case.data, case.cols, case.rows), ">= 10"
    together = b"".join(case.data for case in agents)
    yield "feed, agents' TUIs of 120 columns", _feed(together, 120, 40), ">= 10"


def measure_repaint() -> Iterator[tuple[str, float, str]]:
    """Yield figures of the repaint of 1,000 coloured lines at 80 columns."""
    engine = make_engine(80, 24)
    for number in range(1100):
        line = f"\x1b[3{number % 8}mline {number}\x1b[0m " + "some text " * 6
        engine.feed(line.encode() + b"\r\n")
    engine.replay()
    times = []
    for _ in range(20):
        began = time.perf_counter()
        painted = engine.replay()
        times.append((time.perf_counter() - began) * 1e3)
    yield "repaint of 1,000 coloured lines, ms", statistics.median(times), "<= 50"
    yield "the same, KiB", len(painted) / 1024, "<= 256"


def survive_random_bytes() -> Iterator[tuple[str, float, str]]:
    """Yield how many crashes there were; a real one ends the program."""
    for name, make in (("engine alone", make_engine), ("with the latest", make_screen)):
        crashes = 0
        try:
            torment(make(80, 24), TORMENT_BYTES, random.Random(f"20 MB {name}"))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the figure
            print(f"{name}: {error!r}")
            crashes = 1
        yield f"crashes on 20 MB of random bytes, {name}", crashes, "0"


def _feed(stream: bytes, cols: int, rows: int) -> float:
    data = stream * (FED_BYTES // len(stream) + 1)
    return statistics.median(
        _feed_once(make_engine(cols, rows), data) for _ in range(ROUNDS)
    )


def _feed_once(engine: Engine, data: bytes) -> float:
    began = time.perf_counter()
    for start in range(0, len(data), PIECE_BYTES):
        engine.feed(data[start : start + PIECE_BYTES])
    return len(data) / 1e6 / (time.perf_counter() - began)
