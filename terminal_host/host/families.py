"""Which of the host's orphans a terminal has left behind."""

import os
from collections.abc import Callable, Iterable

from sidestage.ids import TerminalId
from terminal_host.host.processes import (
    ProcessKey,
    ProcessStat,
    Table,
    find_family,
    terminal_mark,
)
from terminal_host.host.sandbox_members import find_namespaces


def find_terminal_family(
    table: Table,
    terminal_id: TerminalId,
    root: ProcessKey,
    *,
    others: Iterable[ProcessKey],
    host: int,
) -> set[ProcessKey]:
    """Return every living process that the terminal's program started.

    That is the program, its session, all below them, and the orphans that the host
    adopted from it. An orphan is known by its sandbox, else by the mark in its
    environment; one without either belongs to this terminal if no other one (*others*)
    was there to start it.
    """
    is_ours = make_orphan_test(table, terminal_id, root, others=others, host=host)
    orphans = {stat.key for stat in table.values() if is_ours(stat)}
    return find_family(table, {root}, orphans)


def make_orphan_test(
    table: Table,
    terminal_id: TerminalId,
    root: ProcessKey,
    *,
    others: Iterable[ProcessKey],
    host: int,
) -> Callable[[ProcessStat], bool]:
    """Return what tells, of a process, whether the terminal left it to the host."""
    rivals = _find_rivals(table, others)

    def is_ours(stat: ProcessStat) -> bool:
        return _is_orphan(stat, host, rivals) and _left_by(
            stat, terminal_id, root, rivals, table
        )

    return is_ours


def _find_rivals(table: Table, others: Iterable[ProcessKey]) -> list[ProcessKey]:
    return [key for key in others if key.pid in table and table[key.pid].key == key]


def _is_orphan(stat: ProcessStat, host: int, rivals: list[ProcessKey]) -> bool:
    return stat.parent == host and stat.key not in rivals and not stat.zombie


def _left_by(
    stat: ProcessStat,
    terminal_id: TerminalId,
    root: ProcessKey,
    rivals: list[ProcessKey],
    table: Table,
) -> bool:
    if stat.session == os.getsid(0):
        return False  # the host's own helper, not a terminal's
    sandboxes = find_namespaces(stat.key.pid)
    if sandboxes:
        theirs = [_sandbox_of(rival, table) for rival in rivals]
        if any(sandboxes & each for each in theirs):
            return False
        if all(theirs):
            return True
    mark = terminal_mark(stat.key.pid)
    if mark is not None:
        return mark == os.fsencode(terminal_id)
    if stat.key.start_ticks < root.start_ticks or stat.session in {
        r.pid for r in rivals
    }:
        return False
    return not any(rival.start_ticks <= stat.key.start_ticks for rival in rivals)


def _sandbox_of(root: ProcessKey, table: Table) -> frozenset[int]:
    """Return the namespaces of the sandbox that *root* is the outer process of."""
    inside = (stat for stat in table.values() if stat.parent == root.pid)
    return frozenset().union(*(find_namespaces(stat.key.pid) for stat in inside))
