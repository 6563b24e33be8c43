"""The regular look at registry and processes. Everything here blocks, in a thread."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sidestage.agents.claude_code.bystanders import PROGRAMS
from sidestage.agents.claude_code.live import (
    Reading,
    RegistryFolder,
    check_process,
    list_registry_files,
    look,
)
from sidestage.agents.processes import AgentProcess, ProcessTable
from sidestage.sessions.evidence import Liveness
from sidestage.sessions.model import Process


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found."""

    readings: tuple[Reading, ...]
    ended: tuple[Process, ...] = ()
    """Runs whose process is gone."""


def look_at(
    folders: Iterable[RegistryFolder], paths: Iterable[str], table: ProcessTable
) -> Look:
    """Read the registry files at *paths*, as far as they are in one of *folders*."""
    by_path = {str(folder.path): folder for folder in folders}
    readings: list[Reading] = []
    for path in paths:
        folder = by_path.get(str(Path(path).parent))
        if folder is not None:
            readings.append(look(folder, path, table, datetime.now(UTC)))
    return Look(tuple(readings))


def look_around(
    folders: Iterable[RegistryFolder],
    known: frozenset[str],
    runs: Iterable[Process],
    table: ProcessTable,
) -> Look:
    """Read every registry file, note the ones that are gone, and check *runs*."""
    folders = tuple(folders)
    files = {path for folder in folders for path in list_registry_files(folder)}
    present = look_at(folders, sorted(files | known), table)
    # A failed probe changes nothing: only what is known to be gone is told.
    ended = (run for run in runs if check_process(run, table) is Liveness.GONE)
    return Look(present.readings, tuple(ended))


def list_agents(table: ProcessTable) -> tuple[AgentProcess, ...] | None:
    """Return the agent processes of this user; None if they could not be listed."""
    try:
        return table.list_agents(PROGRAMS)
    except OSError:
        return None
