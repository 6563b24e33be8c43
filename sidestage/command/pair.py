"""`sidestage pair`: show a link to a phone or browser, and type the code it shows."""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

import segno

from sidestage.command.client import Client, open_client, payload_of, subscribe
from sidestage.command.failure import CommandFailed
from sidestage.command.options import add_state_dir, settings_of
from sidestage.command.table import cell
from sidestage.settings import Settings

SCOPES: Final = ("view", "read", "answer", "terminal")
"""What a device may be given besides ADMIN, which has an option of its own."""
EXPIRY_SLACK_SECONDS: Final = 5.0
"""The server's feed tells of the end; this is for a server that went away."""
ENDS: Final[Mapping[str, str]] = {
    "EXPIRED": "Nobody used the link in time.",
    "CANCELLED": "The pairing was cancelled.",
    "TWO_DEVICES": "Two devices read the link, so neither was let in. Did someone see "
    "it? Pair again where nobody does.",
    "WRONG_PROOFS": "Someone guessed at the link's secret; nobody was let in.",
    "WRONG_CODES": "The code was wrong three times; nobody was let in.",
}

_CREATE: Final = """mutation Create($input: CreatePairingInput!) {
  createPairing(input: $input) {
    __typename
    ... on CreatePairingPayload { link expiresInSeconds pairing { id } }
    ... on UserError { code message }
  }
}"""
_FEED: Final = """subscription Pairings {
  pairingFeed { upserts { id state end name platform scopes content } }
}"""
_CONFIRM: Final = """mutation Confirm($input: ConfirmPairingInput!) {
  confirmPairing(input: $input) {
    __typename
    ... on ConfirmPairingPayload { device { id name } }
    ... on UserError { code message }
  }
}"""
_CANCEL: Final = """mutation Cancel($input: CancelPairingInput!) {
  cancelPairing(input: $input) { __typename }
}"""

Json = Mapping[str, Any]
Subscribe = Callable[[Settings, str, Json], AsyncGenerator[dict[str, Any]]]


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "pair",
        help="pair a phone or browser, by QR code or link",
        description="Shows a link for the device, once. The device then shows a code; "
        "type it here.",
    )
    parser.add_argument("--name", help="what to call it (default: what it says)")
    parser.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        help="what it may do, besides view (may be given several times; default: all "
        "of them)",
    )
    parser.add_argument(
        "--admin", action="store_true", help="let it manage devices and projects too"
    )
    parser.add_argument(
        "--sealed",
        action="store_true",
        help="show it no texts and no names, only what is sealed for it",
    )
    add_state_dir(parser)
    parser.set_defaults(run=run_pair)


def run_pair(arguments: argparse.Namespace) -> int:
    """Open a pairing, wait for the device, and confirm it."""
    settings = settings_of(arguments)
    with open_client(settings) as client:
        data = client.query(_CREATE, {"input": _wish(arguments)})
        made = payload_of(data, "createPairing", "CreatePairingPayload")
        pairing_id = made["pairing"]["id"]
        try:
            _show(made["link"], made["expiresInSeconds"])
            patience = made["expiresInSeconds"] + EXPIRY_SLACK_SECONDS
            claimed = asyncio.run(wait_for_claim(settings, pairing_id, patience))
            device = _confirm(client, claimed)
        except (KeyboardInterrupt, EOFError):
            client.query(_CANCEL, {"input": {"pairingId": pairing_id}})
            raise CommandFailed("Cancelled; the link is worth nothing now.") from None
    name = cell(device["name"]).plain
    sys.stdout.write(f"Paired {name!r}. It is ready in a moment.\n")
    return 0


def _wish(arguments: argparse.Namespace) -> dict[str, Any]:
    wish: dict[str, Any] = {"name": arguments.name}
    if arguments.sealed:
        wish["content"] = "SEALED"
    if arguments.scope or arguments.admin:
        chosen = {"view", *(arguments.scope or SCOPES)}
        wish["scopes"] = [scope.upper() for scope in SCOPES if scope in chosen]
        wish["scopes"] += ["ADMIN"] if arguments.admin else []
    return wish


def _show(link: str, seconds: int) -> None:
    if sys.stdout.isatty():
        # Error correction L: a screen has no scratches, and smaller codes scan better.
        segno.make(link, error="l").terminal(out=sys.stdout, compact=True)
    sys.stdout.write(
        f"\n{link}\n\nScan the code with the device, or open the link on it, within "
        f"{seconds // 60} minutes.\nThe link lets one device in: show it to nobody.\n"
    )
    sys.stdout.flush()


async def wait_for_claim(
    settings: Settings,
    pairing_id: str,
    patience_seconds: float,
    *,
    subscribe: Subscribe = subscribe,
) -> Json:
    """Return the pairing once a device proved that it read the link.

    Raises `CommandFailed` if it ended without one.
    """
    try:
        async with (
            asyncio.timeout(patience_seconds),
            aclosing(subscribe(settings, _FEED, {})) as messages,
        ):
            async for message in messages:
                for row in message["pairingFeed"]["upserts"]:
                    if row["id"] == pairing_id and row["state"] != "OPEN":
                        return _claimed(row)
    except TimeoutError:
        raise CommandFailed(ENDS["EXPIRED"]) from None
    raise CommandFailed("The server ended the pairing.")


def _claimed(row: Json) -> Json:
    if row["state"] == "ENDED":
        raise CommandFailed(ENDS.get(row["end"], "The pairing has ended."))
    return row


def _confirm(client: Client, pairing: Json) -> Json:
    name, platform = cell(pairing["name"]).plain, cell(pairing["platform"]).plain
    allowed = ", ".join(scope.lower() for scope in pairing["scopes"])
    sealed = ", content sealed" if pairing["content"] == "SEALED" else ""
    sys.stdout.write(f"\n{name!r} ({platform}) wants in: {allowed}{sealed}.\n")
    while True:
        sys.stdout.write("The code it shows: ")
        sys.stdout.flush()
        typed = sys.stdin.readline()
        if not typed:
            raise EOFError
        code = "".join(typed.split())
        if not code:
            continue
        wish = {"pairingId": pairing["id"], "code": code}
        answer = client.query(_CONFIRM, {"input": wish})["confirmPairing"]
        if answer["__typename"] == "ConfirmPairingPayload":
            return dict(answer["device"])
        sys.stdout.write(f"{answer['message']}\n")
        if answer["code"] != "PAIRING_CODE_WRONG" or "ended" in answer["message"]:
            raise CommandFailed("Nobody was let in.")
