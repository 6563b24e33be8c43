"""Agent processes that stand in no registry: just starting, or of a version without."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sidestage.agents.processes import AgentProcess
from sidestage.ids import ConversationId
from sidestage.sessions.model import Process

PROGRAMS: Final = frozenset({"claude"})
"""By command name; the script or the link that starts the CLI is called so too."""
REGISTRY_PATIENCE_SECONDS: Final = 10.0
"""The registry file comes within 0.4 s of the start; only a dialog (trust, key) holds
it longer. Until then a process is just starting; later it may be a version without."""

# Subcommands that are no conversation (claude --help); some of them run for long.
_OTHER_COMMANDS: Final = frozenset(
    {
        "--help",
        "--version",
        "-h",
        "-v",
        "agents",
        "attach",
        "auth",
        "daemon",
        "doctor",
        "install",
        "logs",
        "mcp",
        "plugin",
        "rm",
        "setup-token",
        "stop",
        "update",
        "upgrade",
    }
)


def is_conversation(agent: AgentProcess) -> bool:
    """Tell whether an agent's process may be on a conversation, by its arguments."""
    words = agent.arguments[1:]
    if words and words[0].rpartition("/")[2] in PROGRAMS:
        words = words[1:]  # the interpreter came first
    return not words or words[0] not in _OTHER_COMMANDS


def unregistered(
    agents: Iterable[AgentProcess], registered: Iterable[Process]
) -> tuple[AgentProcess, ...]:
    """Return the agents that have no registry entry, their own workers excluded."""
    known = set(registered)
    known_pids = {process.pid for process in known}
    return tuple(
        agent
        for agent in agents
        if agent.process not in known
        and agent.parent_pid not in known_pids
        and is_conversation(agent)
    )


def names_conversation(agent: AgentProcess, conversation: ConversationId) -> bool:
    """Tell whether the process's arguments name the conversation."""
    wanted = conversation.lower()
    return any(wanted in word.lower() for word in agent.arguments[1:])


def stands_in(agent: AgentProcess, directory: str) -> bool:
    """Tell whether the process stands in the folder; links are resolved. Blocks."""
    if agent.directory is None:
        return False
    if agent.directory == directory:
        return True
    try:
        return Path(agent.directory).samefile(directory)
    except (OSError, ValueError):
        return False
