"""`sidestage open`: opens the web client in this machine's browser, logged in."""

import argparse
import html
import os
import sys
import webbrowser
from pathlib import Path
from typing import Final

from sidestage.command.client import open_client
from sidestage.command.options import add_state_dir, settings_of

PAGE_NAME: Final = "open.html"
_PAGE: Final = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0;url={url}">
<title>Sidestage</title>
<a href="{url}">Open Sidestage</a>
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "open",
        help="open the web client in the browser, logged in",
        description="Opens the web client in this machine's browser with a link that "
        "is good once, for a minute. The login lasts twelve hours.",
    )
    add_state_dir(parser)
    parser.add_argument(
        "--print",
        action="store_true",
        help="print the link instead, for a browser of your choice",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Open the browser, or print the link."""
    settings = settings_of(arguments)
    with open_client(settings) as client:
        url = str(client.request("POST", "/control/browser-tickets", {})["url"])
    if arguments.print:
        sys.stdout.write(f"{url}\n")
        return 0
    page = settings.state_dir / PAGE_NAME
    write_page(page, url)
    if webbrowser.open(page.as_uri()):
        sys.stdout.write("Opened Sidestage in your browser.\n")
    else:
        sys.stdout.write(f"Open this within a minute; it works once:\n{url}\n")
    return 0


def write_page(page: Path, url: str) -> None:
    """Write a page that leads to *url* and that only its owner can read.

    The browser is given the page's name: a link among its arguments would be shown to
    every user of the machine (`ps`).
    """
    page.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(page, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(_PAGE.format(url=html.escape(url)))
