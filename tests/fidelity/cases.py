"""The streams: what real programs wrote, one per feature, random ones, agents' TUIs.

`corpus/recorded`, `features` and `random` hold NAME.vt, the bytes, and NAME.json: size
and resizes. `corpus/agents` holds asciicasts of Claude Code, Codex, Gemini, opencode.
"""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).with_name("corpus")
PUBLIC_SETS: Final = ("recorded", "features", "random")
AGENTS: Final = "agents"


@dataclass(frozen=True, slots=True)
class Resize:
    """A new size behind the first *offset* bytes of a stream."""

    offset: int
    cols: int
    rows: int


@dataclass(frozen=True, slots=True)
class Case:
    """One stream and the sizes it was written for."""

    name: str
    """Its set and its own name: `recorded/vim`."""
    cols: int
    rows: int
    data: bytes
    resizes: tuple[Resize, ...] = ()


def list_cases(sets: Iterable[str] = (*PUBLIC_SETS, AGENTS)) -> tuple[Case, ...]:
    """Return all streams of these *sets*, in order of their names."""
    found = []
    for folder in sets:
        paths = sorted((CORPUS / folder).iterdir())
        found += [_read_cast(path) for path in paths if path.suffix == ".cast"]
        found += [_read_stream(path) for path in paths if path.suffix == ".vt"]
    return tuple(found)


def choose_cuts(case: Case, count: int, rng: random.Random) -> list[int]:
    """Return the end of *case* and about *count* offsets before it.

    A third lies in or right behind an escape sequence, a third inside a character of
    several bytes, if there are such.
    """
    data, size = case.data, len(case.data)
    if size <= count:
        return list(range(1, size + 1))
    places = (
        [offset for offset, byte in enumerate(data) if byte == 0x1B],
        [offset for offset, byte in enumerate(data) if byte >= 0xC0],
        list(range(size)),
    )
    cuts: set[int] = set()
    while len(cuts) < count:
        found = places[rng.randrange(3)] or places[2]
        reach = 6 if found is places[0] else 1
        cuts.add(min(size, rng.choice(found) + rng.randint(1, reach)))
    return sorted(cuts | {size})


def _read_stream(path: Path) -> Case:
    about = json.loads(path.with_suffix(".json").read_text())
    resizes = tuple(Resize(at, cols, rows) for at, _, cols, rows in about["events"])
    name = f"{path.parent.name}/{path.stem}"
    return Case(name, about["cols"], about["rows"], path.read_bytes(), resizes)


def _read_cast(path: Path) -> Case:
    head, *events = map(json.loads, path.read_text().splitlines())
    data, resizes = b"", []
    for _, kind, text in events:
        if kind == "o":
            data += text.encode()
        elif kind == "r":
            cols, _, rows = text.partition("x")
            resizes.append(Resize(len(data), int(cols), int(rows)))
    name = f"{path.parent.name}/{path.stem}"
    return Case(name, head["width"], head["height"], data, tuple(resizes))
