"""`sidestage doctor`: what works on this machine, and what to do about the rest."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Final

from rich.console import Console
from rich.text import Text

from api.checks import list_findings
from api.findings import Finding, Verdict
from sidestage.command.client import open_client
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_json, add_state_dir, settings_of
from sidestage.settings import Settings

_PATH: Final = "/control/checks"
_HEALTH: Final = "{ server { health { status notes } } }"
_STYLES: Final = {
    Verdict.OK: ("ok     ", "green"),
    Verdict.WARNING: ("warning", "yellow"),
    Verdict.PROBLEM: ("problem", "bold red"),
}


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what works here, and what to do about the rest",
        description="Checks this machine: as the server sees it if one runs, with its "
        "PATH and settings, else as this shell does. Exit status 1 if there is a "
        "problem.",
    )
    add_json(parser)
    add_state_dir(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run every check and print what each found."""
    settings = settings_of(arguments)
    try:
        findings, seen_by = _ask_server(settings), "as the server sees it"
    except CommandFailed as error:
        findings, seen_by = list(list_findings(settings)), "as this shell sees it"
        findings.append(Finding("server", Verdict.WARNING, str(error)))
    if arguments.json:
        json.dump([asdict(each) for each in findings], sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(f"This machine, {seen_by}:\n")
        _print(findings)
    return 1 if any(each.verdict is Verdict.PROBLEM for each in findings) else 0


def _ask_server(settings: Settings) -> list[Finding]:
    with open_client(settings) as client:
        rows = client.request("GET", _PATH)["checks"]
        health = client.query(_HEALTH)["server"]["health"]
    findings = [
        Finding(row["name"], Verdict(row["verdict"]), row["sentence"]) for row in rows
    ]
    return [*findings, _judge(health["status"] == "OK", health["notes"])]


def _judge(well: bool, notes: list[str]) -> Finding:  # noqa: FBT001 the server's word
    if well:
        return Finding("server", Verdict.OK, "It runs and is well.")
    return Finding("server", Verdict.WARNING, " ".join(notes))


def _print(findings: list[Finding]) -> None:
    console = Console(highlight=False)
    for each in findings:
        label, style = _STYLES[each.verdict]
        line = Text(label, style=style)
        line.append(f"  {each.name}: ", style="bold")
        line.append(each.sentence, style="")
        console.print(line, soft_wrap=True)
