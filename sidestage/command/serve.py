"""`sidestage serve`: discovers, streams, resumes, until it is stopped."""

import argparse
import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Final

import uvloop

from sidestage.command.failure import CommandFailed
from sidestage.command.log_lines import JsonLines
from sidestage.command.options import add_state_dir
from sidestage.command.own_name import write_command
from sidestage.settings import Settings, read_settings

if TYPE_CHECKING:
    from api.server import Ready

OWN_LOGGERS: Final = ("api", "resolvers", "sidestage", "terminal_host")
LOG_PATTERN: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "serve",
        help="discover sessions and serve the API until stopped",
        description="Discovers the sessions of your agents and serves the API. Stop it "
        "with Ctrl-C: terminals go on running and are found again.",
        epilog="Every setting, and where else it can be set: docs/settings.md.",
    )
    add_state_dir(parser)
    parser.add_argument("--host", metavar="ADDRESS", help="default: 127.0.0.1")
    parser.add_argument(
        "--port", type=int, help="default: 8787; 0 lets the system pick a free one"
    )
    parser.add_argument(
        "--insecure-bind",
        action="store_true",
        default=None,
        help="listen beyond loopback without TLS",
    )
    parser.add_argument(
        "--public-url",
        action="append",
        metavar="URL",
        dest="public_urls",
        help="an address under which clients reach the server",
    )
    parser.add_argument(
        "--no-sandbox",
        action="store_false",
        dest="sandbox",
        default=None,
        help="run terminals with all your rights",
    )
    parser.add_argument(
        "--allow-root",
        action="store_true",
        default=None,
        help="start sandboxed terminals also as root, where the sandbox is weaker",
    )
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default=None
    )
    parser.add_argument("--log-format", choices=("text", "json"), default=None)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    flags = {
        name: value
        for name, value in vars(arguments).items()
        if name not in {"run", "public_urls"}
    }
    if arguments.public_urls:
        flags["public_urls"] = tuple(arguments.public_urls)
    # Not at the top: it builds the schema, which no other subcommand needs.
    from api.server import serve

    settings = read_settings(flags)
    set_up_logs(settings)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, on_ready=announce))
    except OSError as error:
        # Which file or socket it was is told by the error alone; it is not our bug.
        raise CommandFailed(f"The server cannot start: {error}.") from error
    return 0


def set_up_logs(settings: Settings) -> None:
    """Log to standard error, as the settings say."""
    handler = logging.StreamHandler()
    as_json = settings.log_format == "json"
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(LOG_PATTERN))
    # Libraries log what they work on, at their debug level: statements with their
    # values, frames with their bytes. Only our own loggers may be turned up.
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(settings.log_level.upper())


def announce(ready: "Ready") -> None:
    """Say where the server answers and what to do next."""
    settings = ready.settings
    lines = [
        f"Sidestage found {_count(ready.sessions, 'session')} and serves on",
        ready.url,
        f"The admin token lies in {settings.admin_token_file}",
        *_next_steps(ready),
        "Stop with Ctrl-C; terminals go on running.",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    if ready.as_root and not settings.allow_root:
        sys.stderr.write(
            "sidestage: warning: running as root. Terminals need an ordinary user "
            "(or --allow-root, where the sandbox is weaker).\n"
        )


def _next_steps(ready: "Ready") -> tuple[str, ...]:
    def write(words: str) -> str:
        return f"`{write_command(ready.settings, words)}`"

    start: tuple[str, ...] = ()
    if ready.sessions == 0:
        start = ("Next: start an agent in any terminal, and say something.",)
    if ready.projects == 0:
        then = "Then" if start else "Next"
        adding = f"{then}: {write('projects add FOLDER')}, so that sessions there can "
        return (*start, f"{adding}be resumed; {write('sessions')} lists them all.")
    if start:
        return (*start, f"Then: {write('sessions')} lists it.")
    return (f"Next: {write('sessions')} lists them; {write('resume ID')}.",)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
