"""What the server says of itself."""

from typing import Final

import strawberry

from resolvers import node as nodes
from resolvers.content import labelled, plain
from resolvers.context import Context, Info
from resolvers.enums import HealthStatus
from resolvers.node import host_of
from resolvers.parts import Health as HealthValue
from resolvers.projects import Host
from resolvers.scalars import Base64, BigInt
from sidestage.devices.model import ContentMode

SCHEMA_VERSION: Final = "1"
"""Rises with a breaking change of the schema only."""


@strawberry.type(description="A count of something the server met.")
class HealthCounter:
    """A count of something the server met."""

    name: str = plain("What is counted, such as `tornLines`.")
    value: BigInt = plain("How many since the server started.")


def _status(root: strawberry.Parent[HealthValue]) -> HealthStatus:
    return HealthStatus.OK if root.ok else HealthStatus.DEGRADED


def _counters(root: strawberry.Parent[HealthValue]) -> list[HealthCounter]:
    counters = sorted(root.counters.items())
    return [HealthCounter(name=name, value=BigInt(value)) for name, value in counters]


@strawberry.type(description="How well the server is.")
class Health:
    """How well the server is."""

    status: HealthStatus = plain("Whether something needs attention.", resolver=_status)
    ready: bool = plain("Whether the first list of sessions is complete.")
    notes: list[str] = labelled("What does not work fully, and what to do about it.")
    counters: list[HealthCounter] = plain("Counts for dashboards.", resolver=_counters)


def _version(info: Info) -> str:
    return info.context.parts.server.version


def _schema_version() -> str:
    return SCHEMA_VERSION


def _host(info: Info) -> nodes.Host:
    return host_of(info.context)


def _health(info: Info) -> HealthValue:
    return info.context.parts.server.health()


def _urls(info: Info) -> list[str]:
    server = info.context.parts.server
    return [*server.public_urls, f"http://127.0.0.1:{server.bound_port()}"]


def base_url(context: Context) -> str:
    """Return the address under which clients reach this server best."""
    server = context.parts.server
    if server.public_urls:
        return server.public_urls[0].rstrip("/")
    return f"http://127.0.0.1:{server.bound_port()}"


def _host_key(info: Info) -> bytes:
    return info.context.parts.devices.host_key.raw


def _host_key_id(info: Info) -> str:
    return info.context.parts.devices.host_key.key_id


async def _vapid_public_key(info: Info) -> str:
    return await info.context.parts.push.vapid_public_key()


def _content_mode(info: Info) -> ContentMode:
    return info.context.principal.content


def _oldest_client(info: Info) -> str:
    return info.context.parts.server.oldest_client


def _capabilities(info: Info) -> list[str]:
    return list(info.context.parts.server.capabilities)


@strawberry.type(description="This server.")
class Server:
    """This server."""

    version: str = plain("Sidestage's version.", resolver=_version)
    schema_version: str = plain(
        "The schema's version; it rises with a breaking change only.",
        resolver=_schema_version,
    )
    host = strawberry.field(
        resolver=_host, graphql_type=Host, description="The machine it runs on."
    )
    health = strawberry.field(
        resolver=_health, graphql_type=Health, description="How well it is."
    )
    urls: list[str] = labelled(
        "Base addresses under which it can be reached, the best one first.",
        resolver=_urls,
    )
    content_mode: ContentMode = plain(
        "Whether fields marked `@content` travel in clear.", resolver=_content_mode
    )
    host_key: Base64 = plain(
        "The host's X25519 public key. A device trusts the one in its pairing link.",
        resolver=_host_key,
    )
    host_key_id: str = plain(
        "The id of that key, as envelopes name it.", resolver=_host_key_id
    )
    vapid_public_key: str = plain(
        "What browsers subscribe to push with (`applicationServerKey`), in base64url.",
        resolver=_vapid_public_key,
    )
    oldest_client: str = plain(
        "The oldest client version it serves, as `Sidestage-Client: name/version`.",
        resolver=_oldest_client,
    )
    capabilities: list[str] = plain(
        "Names of what this server can do beyond the schema's first release.",
        resolver=_capabilities,
    )


def this_server() -> Server:
    """Return the one server there is."""
    return Server()
