"""The environment of a program in a terminal: an allow-list.

A mask over `~/.aws` is no mask while `AWS_SECRET_ACCESS_KEY` passes, so nothing passes
that is not named here or by the template. It travels by `execve`, never as an argument:
argument lists are readable by every user of the machine.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

HOOK_FOLDER_INSIDE: Final = Path("/run/sidestage")
"""Where a sandbox sees the folder of its hook socket. A folder, not the socket: a
socket bound as a file is dead once the server made a new one."""
HOOK_SOCKET_INSIDE: Final = HOOK_FOLDER_INSIDE / "hook.sock"
HOOK_PROGRAM_INSIDE: Final = Path("/run/sidestage-hook.py")
GIT_CONFIG_INSIDE: Final = Path("/run/sidestage-gitconfig")

_PASSED: Final = frozenset(
    {
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        # Proxies: curl's and most programs' lower case, the others' upper case.
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        # Where a company's own certificate authority is named.
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
    }
)
_PASSED_PREFIXES: Final = ("LC_", "ANTHROPIC_", "CLAUDE_CODE_")
"""Locale, and what the agent's logins need."""

_NESTING: Final = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_SSE_PORT",
    }
)
_NESTING_PREFIXES: Final = (
    "CLAUDE_CODE_SESSION_",
    "CLAUDE_CODE_CHILD_",
    "CLAUDE_CODE_MESSAGING_",
    "CLAUDE_CODE_BRIDGE_",
)
"""What an agent tells its own children (2.1.328, read from a tool's environment; the
port is an editor's, the bridge a remote control's). A child that believes it is nested
does not save its transcript, and the messaging token speaks for another session."""

TERM_NAME: Final = "xterm-256color"
COLORTERM_NAME: Final = "truecolor"


def child_environment(
    parent: Mapping[str, str],
    *,
    passed: Iterable[str] = (),
    added: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the environment for the child of a server that has *parent*.

    *passed* names what the owner lets through besides, exactly; it cannot name what
    tells a child that it is nested. *added* is set last.
    """
    further = {name for name in passed if not _nests(name)}
    child = {
        name: value for name, value in parent.items() if name in further or passes(name)
    }
    return child | {"TERM": TERM_NAME, "COLORTERM": COLORTERM_NAME} | dict(added)


def sandbox_environment(*, git_config: str) -> dict[str, str]:
    """Return what a sandbox with that git configuration adds to its child's own."""
    return {"GIT_CONFIG_GLOBAL": str(GIT_CONFIG_INSIDE)} if git_config else {}


def passes(name: str) -> bool:
    """Tell whether the variable *name* passes without a template that names it."""
    if _nests(name):
        return False
    return name in _PASSED or name.startswith(_PASSED_PREFIXES)


def _nests(name: str) -> bool:
    return name in _NESTING or name.startswith(_NESTING_PREFIXES)


def render_git_config(name: str | None, email: str | None) -> str:
    """Return a git configuration that holds the owner's name and e-mail only.

    No credential helper, no include, no alias: what pushes stays outside.
    """
    entries = [("name", name), ("email", email)]
    lines = [f'\t{key} = "{_escape(value)}"\n' for key, value in entries if value]
    return "[user]\n" + "".join(lines) if lines else ""


def _escape(value: str) -> str:
    """Quote *value* for a git configuration file (git-config(1), "Values")."""
    printable = "".join(c for c in value if c.isprintable())
    return printable.replace("\\", "\\\\").replace('"', '\\"')
