"""The interface of everything that has an id, and the way from an id to its object."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import strawberry

from resolvers.content import plain
from resolvers.context import Context
from sidestage.audit import AuditEntry
from sidestage.devices.model import Device, Scope
from sidestage.errors import BadUserInput, PermissionDenied
from sidestage.handover.model import Offer
from sidestage.ids import (
    ID_LIMIT_CHARACTERS,
    DeviceId,
    HostId,
    ProjectId,
    SessionId,
    TemplateId,
    TerminalId,
)
from sidestage.projects.model import Project
from sidestage.requests.model import AgentRequest
from sidestage.sessions.model import Session
from sidestage.terminals.desk import Template
from sidestage.terminals.model import Terminal

NODES_LIMIT: Final = 100
"""Ids in one call of `nodes`: one page."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that Sidestage runs on."""

    id: HostId
    name: str


TYPE_NAMES: Final[dict[type, str]] = {
    Session: "OutsideSession",
    Project: "Project",
    Terminal: "Terminal",
    Template: "Template",
    Host: "Host",
    Device: "Device",
    AgentRequest: "AgentRequest",
    AuditEntry: "AuditEntry",
    Offer: "HandoverOffer",
}


@strawberry.interface(
    name="Node",
    description=(
        "Something with an id of its own. An id is opaque, unique among all hosts, "
        "and stable for the life of its object."
    ),
)
class Node:
    """Something with an id of its own."""

    id: strawberry.ID = plain("The object's id; give it to `node`.")

    @classmethod
    def resolve_type(cls, value: object, _info: object, _type: object) -> str:
        """Return the name of the GraphQL type that shows *value*."""
        return TYPE_NAMES[type(value)]


def check_id(id_: str, kind: str) -> str:
    """Return *id_* if it names a *kind*; raise `BadUserInput` otherwise."""
    if len(id_) > ID_LIMIT_CHARACTERS or not id_.startswith(f"{kind}:"):
        raise BadUserInput(f"That is not the id of a {kind}.")
    return id_


def host_of(context: Context) -> Host:
    """Return the machine this server runs on."""
    server = context.parts.server
    return Host(server.host_id, server.host_name)


def _session(context: Context, id_: str) -> object | None:
    return context.parts.sessions.find(SessionId(id_))


def _project(context: Context, id_: str) -> object | None:
    return context.parts.projects.feed.get(ProjectId(id_))


def _terminal(context: Context, id_: str) -> object | None:
    return context.parts.terminals.feed.get(TerminalId(id_))


def _template(context: Context, id_: str) -> object | None:
    return find_template(context, TemplateId(id_))


def _offer(context: Context, id_: str) -> object | None:
    return context.parts.handovers.feed.get(id_)


def _host(context: Context, id_: str) -> object | None:
    host = host_of(context)
    return host if host.id == id_ else None


def _device(context: Context, id_: str) -> object | None:
    return context.parts.devices.feed.get(DeviceId(id_))


def _request(context: Context, id_: str) -> object | None:
    return context.parts.requests.feed.get(id_)


FINDERS: Final[dict[str, Callable[[Context, str], object | None]]] = {
    "outside": _session,
    "project": _project,
    "terminal": _terminal,
    "template": _template,
    "host": _host,
    "offer": _offer,
    "device": _device,
    "request": _request,
}


def find_template(context: Context, id_: TemplateId) -> Template | None:
    """Return the template with that id, or None."""
    templates = context.parts.terminals.list_templates()
    return next((template for template in templates if template.id == id_), None)


async def find_node(context: Context, id_: str) -> object | None:
    """Return the object with that id; None if there is none, or it is no id of ours.

    Raises `PermissionDenied` for an audit entry unless the caller has `ADMIN`.
    """
    if len(id_) > ID_LIMIT_CHARACTERS:
        return None
    kind, _, body = id_.partition(":")
    if kind == "audit":
        return await _find_audit_entry(context, body)
    find = FINDERS.get(kind)
    return find(context, id_) if find else None


async def _find_audit_entry(context: Context, body: str) -> object | None:
    if not context.principal.may(Scope.ADMIN):
        raise PermissionDenied("The audit log needs the scope ADMIN.")
    if not (body.isascii() and body.isdigit() and len(body) < 19):
        return None
    entries = await context.parts.audit.list_entries(limit=1, before_seq=int(body) + 1)
    return next((entry for entry in entries if entry.seq == int(body)), None)


async def find_nodes(context: Context, ids: list[str]) -> list[object | None]:
    """Return the objects with those ids, in their order."""
    if len(ids) > NODES_LIMIT:
        raise BadUserInput(f"nodes takes at most {NODES_LIMIT} ids.")
    return [await find_node(context, id_) for id_ in ids]
