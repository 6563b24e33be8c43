"""What a host wrote down about its programs, so that the next host can end them.

A host that dies takes its sandboxes and most programs with it (the kernel hangs up on
their terminals), but not those that left their session.
"""

import json
import logging
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidestage.ids import TerminalId
from terminal_host.host.processes import (
    ProcessKey,
    boot_id,
    end_processes,
    find_family,
    read_table,
    terminal_mark,
)

FILE_NAME: Final = "process.json"
_FILE_LIMIT_BYTES: Final = 4096
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leftover:
    """The program that a host started in a terminal, by the file about it."""

    terminal_id: TerminalId
    root: ProcessKey
    boot_id: str


def write_leftover(folder: Path, leftover: Leftover) -> None:
    """Write *leftover* into *folder*, atomically; the folder is made, 0700."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps(
        {
            "terminal_id": leftover.terminal_id,
            "pid": leftover.root.pid,
            "start_ticks": leftover.root.start_ticks,
            "boot_id": leftover.boot_id,
        }
    )
    temporary = folder / (FILE_NAME + ".new")
    temporary.write_text(text)
    temporary.replace(folder / FILE_NAME)


def remove_leftover(folder: Path) -> None:
    """Forget what *folder* says; a folder that holds nothing else goes too."""
    with suppress(FileNotFoundError):
        (folder / FILE_NAME).unlink()
    with suppress(OSError):  # not there, or others keep something in it
        folder.rmdir()


def find_leftovers(terminals: Path) -> tuple[Leftover, ...]:
    """Return what the folders below *terminals* say of programs of this boot."""
    found = (_read(path) for path in terminals.glob("*/" + FILE_NAME))
    current = boot_id()
    return tuple(one for one in found if one is not None and one.boot_id == current)


def end_leftovers(
    terminals: Path, *, spared: Collection[TerminalId] = frozenset()
) -> None:
    """End every process that earlier hosts left, and forget them. Blocks.

    The terminals *spared* belong to a host that lives.
    """
    found = find_leftovers(terminals)
    leftovers = tuple(one for one in found if one.terminal_id not in spared)
    if leftovers:
        marks = {os.fsencode(one.terminal_id) for one in leftovers}
        stuck = end_processes(
            lambda: _find(leftovers, marks), last={one.root for one in leftovers}
        )
        if stuck:
            _log.warning("%d processes of an earlier host cannot be ended", len(stuck))
    for path in terminals.glob("*/" + FILE_NAME):
        if path.parent.name not in spared:
            remove_leftover(path.parent)


def _find(leftovers: tuple[Leftover, ...], marks: set[bytes]) -> set[ProcessKey]:
    table = read_table()
    marked = {
        stat.key
        for stat in table.values()
        if stat.key.pid != os.getpid() and terminal_mark(stat.key.pid) in marks
    }
    return find_family(table, {one.root for one in leftovers}, marked)


def _read(path: Path) -> Leftover | None:
    """Return what one file says; a damaged one counts as absent."""
    try:
        with path.open() as file:
            fields = json.loads(file.read(_FILE_LIMIT_BYTES))
        return Leftover(
            TerminalId(str(fields["terminal_id"])),
            ProcessKey(int(fields["pid"]), int(fields["start_ticks"])),
            str(fields["boot_id"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        _log.warning("a file about a terminal's program is damaged; it is ignored")
        return None
