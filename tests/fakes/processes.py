"""A process table that holds what a test puts there."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from sidestage.agents.processes import AgentProcess, ProcessTable
from sidestage.sessions.model import Process

DOMAIN = "linux:00000000000000000000000000000000:pid:[4026531836]"
"""The pid domain of the recorded registry files."""


@dataclass(slots=True)
class FakeProcesses:
    """The port `ProcessTable`."""

    ticks: dict[int, str] = field(default_factory=dict)
    agents: list[AgentProcess] = field(default_factory=list)
    domain: str = DOMAIN
    booted_at: datetime = field(
        default_factory=lambda: datetime.fromtimestamp(1_700_000_000, UTC)
    )
    broken: bool = False

    def find_start_ticks(self, pid: int) -> str | None:
        if self.broken:
            raise PermissionError(pid)
        return self.ticks.get(pid)

    def list_agents(self, programs: frozenset[str]) -> tuple[AgentProcess, ...]:
        if self.broken:
            raise PermissionError
        return tuple(self.agents)

    def open_exit(self, pid: int) -> int:
        raise OSError(pid)  # the regular look has to do


def agent(
    pid: int,
    directory: str,
    *arguments: str,
    age_seconds: float = 60.0,
    parent_pid: int = 1,
    terminal_id: str | None = None,
) -> AgentProcess:
    """Return a process that runs the agent."""
    return AgentProcess(
        Process(pid, str(pid * 10)),
        parent_pid,
        directory,
        ("claude", *arguments),
        age_seconds,
        terminal_id,
    )


def _is_the_port(processes: FakeProcesses) -> ProcessTable:
    return processes
