"""How the command line speaks to `serve`: GraphQL over the control socket."""

import json
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import httpx
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from sidestage.command.failure import CommandFailed, ServerGone
from sidestage.command.own_name import write_command
from sidestage.settings import Settings

ANSWER_PATIENCE_SECONDS: Final = 75.0
"""A start may take a minute on a loaded machine; a query takes milliseconds."""
BASE: Final = "http://sidestage"
MESSAGE_LIMIT_BYTES: Final = 16 * 1024 * 1024
OWN_CLOSE_CODES: Final = 4000
"""From here on a code says what was wrong with us; below, that the server went away."""

Json = Mapping[str, Any]


class Client:
    """A connection to the server on one control socket."""

    def __init__(self, http: httpx.Client, settings: Settings) -> None:
        self._http = http
        self.settings = settings

    def write(self, words: str) -> str:
        """Return the command line that runs *words* on this server."""
        return write_command(self.settings, words)

    def query(self, document: str, variables: Json | None = None) -> dict[str, Any]:
        """Run an operation and return its data; raises `CommandFailed`."""
        body = {"query": document, "variables": dict(variables or {})}
        answer = self.request("POST", "/graphql", body)
        errors = answer.get("errors")
        if errors:
            raise CommandFailed(_sentence(errors[0]))
        data = answer.get("data")
        if not isinstance(data, dict):
            raise CommandFailed("The server's answer holds no data.")
        return data

    def request(
        self, method: str, path: str, body: Json | None = None
    ) -> dict[str, Any]:
        """Send a request and return the JSON object of its answer."""
        try:
            response = self._http.request(
                method,
                path,
                json=body,
                headers={"Accept": "application/json"},
            )
            answer = response.json()
        except httpx.TransportError as error:
            raise no_server(self.settings) from error
        except ValueError as error:
            raise CommandFailed("The server's answer is not JSON.") from error
        if not isinstance(answer, dict):
            raise CommandFailed("The server's answer is not a JSON object.")
        if response.is_error and "errors" not in answer:
            raise CommandFailed(str(answer.get("message", response.reason_phrase)))
        return answer


def _sentence(error: Json) -> str:
    code = error.get("extensions", {}).get("code")
    # Here only who runs inside an agent lacks a scope: the owner has all of them.
    advice = " Run this in your own terminal." if code == "PERMISSION_DENIED" else ""
    return f"{error.get('message')}{advice}"


@contextmanager
def open_client(settings: Settings) -> Iterator[Client]:
    """Give a client of the server on the settings' state folder.

    Raises `ServerGone` if none listens there.
    """
    _check_listening(settings)
    transport = httpx.HTTPTransport(uds=str(settings.control_socket))
    with httpx.Client(
        transport=transport, base_url=BASE, timeout=ANSWER_PATIENCE_SECONDS
    ) as http:
        yield Client(http, settings)


def _check_listening(settings: Settings) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(settings.control_socket))
        except OSError as error:
            raise no_server(settings) from error


def no_server(settings: Settings) -> ServerGone:
    """Return the error that no server listens on the settings' state folder."""
    return ServerGone(
        f"No server answers on {settings.control_socket}. Start one with "
        f"`{write_command(settings, 'serve')}`, or name its state folder with "
        "--state-dir."
    )


def payload_of(data: Json, field: str, typename: str) -> dict[str, Any]:
    """Return a mutation's payload; a typed error raises `CommandFailed`."""
    answer = data[field]
    if answer["__typename"] != typename:
        raise CommandFailed(str(answer.get("message", answer["__typename"])))
    return dict(answer)


@asynccontextmanager
async def open_socket(
    settings: Settings, path: str, subprotocol: str
) -> AsyncGenerator[ClientConnection]:
    """Open a WebSocket to the server; raises `ServerGone`."""
    try:
        connection = await unix_connect(
            str(settings.control_socket),
            uri=f"ws://sidestage/{path}",
            subprotocols=[Subprotocol(subprotocol)],
            compression=None,
            max_size=MESSAGE_LIMIT_BYTES,
        )
    except (OSError, InvalidHandshake) as error:
        # A handshake fails when the server goes away meanwhile: it refuses nobody here.
        raise no_server(settings) from error
    async with connection:
        yield connection


async def subscribe(
    settings: Settings, document: str, variables: Json
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the data of each message of a subscription.

    Raises `ServerGone` when the server goes away, `CommandFailed` if it refuses.
    """
    async with open_socket(settings, "graphql", "graphql-transport-ws") as connection:
        await connection.send(json.dumps({"type": "connection_init"}))
        operation = {"query": document, "variables": dict(variables)}
        try:
            async for frame in connection:
                message = json.loads(frame)
                if message["type"] == "connection_ack":
                    start = {"id": "1", "type": "subscribe", "payload": operation}
                    await connection.send(json.dumps(start))
                elif message["type"] == "ping":
                    await connection.send(json.dumps({"type": "pong"}))
                elif message["type"] == "next":
                    yield message["payload"]["data"]
                elif message["type"] == "error":
                    raise CommandFailed(str(message["payload"][0]["message"]))
        except ConnectionClosed as error:
            raise _closed(connection.close_code, connection.close_reason) from error
        raise _closed(connection.close_code, connection.close_reason)


def _closed(code: int | None, reason: str | None) -> CommandFailed:
    sentence = f"The server closed the connection ({reason or code})."
    if code is not None and code >= OWN_CLOSE_CODES:
        return CommandFailed(sentence)
    return ServerGone(sentence)
