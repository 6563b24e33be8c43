"""The whole schema: roots, scalars, and the types that only interfaces name."""

from functools import cache
from typing import Annotated, Any, Final

import strawberry
from graphql import GraphQLSchema
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig

from resolvers import (
    adoption,
    device_feeds,
    device_mutations,
    feeds,
    handover_mutations,
    hooks,
    project_mutations,
    push_mutations,
    request_feeds,
    request_mutations,
    terminal_mutations,
    user_errors,
)
from resolvers.adoption import AdoptionPolicy, read_policy
from resolvers.agent_requests import AgentRequestConnection, list_requests
from resolvers.audit import AuditEntryConnection, list_audit_entries
from resolvers.content import plain
from resolvers.context import Info
from resolvers.devices import DeviceConnection, Viewer, list_devices, this_viewer
from resolvers.handover import HandoverOfferConnection, follow_offers, list_offers
from resolvers.hooks import HookInstallation, list_hooks
from resolvers.node import Node, find_node, find_nodes
from resolvers.projects import ProjectConnection, list_projects
from resolvers.scalars import SCALARS, Base64
from resolvers.sealed import seal_content
from resolvers.server import Server, this_server
from resolvers.sessions import OutsideSessionConnection, list_sessions
from resolvers.statistics import SessionCount, UsagePoint, count_sessions, read_usage
from resolvers.terminals import (
    Template,
    TerminalConnection,
    list_templates,
    list_terminals,
)
from resolvers.transcripts import ENTRY_TYPES

Id = Annotated[strawberry.ID, strawberry.argument(description="The object's id.")]
Ids = Annotated[
    list[strawberry.ID],
    strawberry.argument(description="The objects' ids, 100 at most."),
]


async def _node(info: Info, id: Id) -> object | None:  # noqa: A002 -- the schema's name
    return await find_node(info.context, id)


async def _nodes(info: Info, ids: Ids) -> list[object | None]:
    return await find_nodes(info.context, list(ids))


@strawberry.type(description="What can be asked.")
class Query:
    """What can be asked."""

    node = plain(
        "The object with that id, or null.", resolver=_node, graphql_type=Node | None
    )
    nodes = plain(
        "The objects with those ids, in their order; null where there is none.",
        resolver=_nodes,
        graphql_type=list[Node | None],
    )
    server = plain("This server.", resolver=this_server, graphql_type=Server)
    outside_sessions = plain(
        "The sessions on this host, whoever started them. A list that stays right is "
        "`outsideSessionFeed`.",
        resolver=list_sessions,
        graphql_type=OutsideSessionConnection,
    )
    projects = plain(
        "The registered projects, by name.",
        resolver=list_projects,
        graphql_type=ProjectConnection,
    )
    terminals = plain(
        "The terminals of Sidestage, latest start first.",
        resolver=list_terminals,
        graphql_type=TerminalConnection,
    )
    templates = plain(
        "What a terminal may run.",
        resolver=list_templates,
        graphql_type=list[Template],
    )
    requests = plain(
        "What live sessions wait for a person for, latest first. A list that stays "
        "right is `requestFeed`.",
        resolver=list_requests,
        graphql_type=AgentRequestConnection,
    )
    session_counts = plain(
        "How many sessions there are, by state, project or agent; the largest first.",
        resolver=count_sessions,
        graphql_type=list[SessionCount],
    )
    usage = plain(
        "Tokens over time; stretches without any are left out.",
        resolver=read_usage,
        graphql_type=list[UsagePoint],
    )
    viewer = plain("The caller.", resolver=this_viewer, graphql_type=Viewer)
    devices = plain(
        "The paired devices, revoked ones too, in the order they were paired.",
        resolver=list_devices,
        graphql_type=DeviceConnection,
    )
    handover_offers = plain(
        "The handover offers of a week, latest first. A list that stays right is "
        "`handoverOfferFeed`.",
        resolver=list_offers,
        graphql_type=HandoverOfferConnection,
    )
    audit_log = plain(
        "Who did what, newest first.",
        resolver=list_audit_entries,
        graphql_type=AuditEntryConnection,
    )
    hooks = plain(
        "How Sidestage's hooks stand in each settings file of an agent.",
        resolver=list_hooks,
        graphql_type=list[HookInstallation],
    )
    adoption_policy = plain(
        "For which sessions hooks may make requests and offers.",
        resolver=read_policy,
        graphql_type=AdoptionPolicy,
    )


@strawberry.type(
    description=(
        "What can be done. Each answer is a union of a payload and typed errors, all "
        "of which implement `UserError`."
    )
)
class Mutation:
    """What can be done."""

    register_project = plain(
        "Register a folder, so that terminals may be started in it.",
        resolver=project_mutations.register_project,
        graphql_type=project_mutations.RegisterProjectResult,
    )
    update_project = plain(
        "Change a project's name, templates or protection.",
        resolver=project_mutations.update_project,
        graphql_type=project_mutations.UpdateProjectResult,
    )
    remove_project = plain(
        "Forget a project. Its folder and its running terminals stay.",
        resolver=project_mutations.remove_project,
        graphql_type=project_mutations.RemoveProjectResult,
    )
    install_hooks = plain(
        "Put Sidestage's hooks into every settings file of an agent. What is there "
        "stays as it is; twice is once.",
        resolver=hooks.install_hooks,
        graphql_type=hooks.InstallHooksResult,
    )
    uninstall_hooks = plain(
        "Take Sidestage's hooks out of every settings file of an agent.",
        resolver=hooks.uninstall_hooks,
        graphql_type=hooks.UninstallHooksResult,
    )
    set_adoption_policy = plain(
        "Decide for which sessions hooks may make requests and offers. It counts at "
        "once, also for sessions that run.",
        resolver=adoption.set_policy,
        graphql_type=adoption.SetAdoptionPolicyResult,
    )
    resume_outside_session = plain(
        "Resume an ended session on the same conversation, in a sandboxed terminal.",
        resolver=terminal_mutations.resume_outside_session,
        graphql_type=terminal_mutations.ResumeOutsideSessionResult,
    )
    start_terminal = plain(
        "Start a program in a project's folder.",
        resolver=terminal_mutations.start_terminal,
        graphql_type=terminal_mutations.StartTerminalResult,
    )
    rename_terminal = plain(
        "Give a terminal another name.",
        resolver=terminal_mutations.rename_terminal,
        graphql_type=terminal_mutations.RenameTerminalResult,
    )
    resize_terminal = plain(
        "Set a terminal's size, for every client.",
        resolver=terminal_mutations.resize_terminal,
        graphql_type=terminal_mutations.ResizeTerminalResult,
    )
    close_terminal = plain(
        "End every process of a terminal and forget it.",
        resolver=terminal_mutations.close_terminal,
        graphql_type=terminal_mutations.CloseTerminalResult,
    )
    answer_handover = plain(
        "Answer a session's question with a paired device's key. Needs `ANSWER`.",
        resolver=handover_mutations.answer_handover,
        graphql_type=handover_mutations.AnswerHandoverResult,
    )
    dismiss_handover = plain(
        "Put an offer away. What runs in a terminal already goes on.",
        resolver=handover_mutations.dismiss_handover,
        graphql_type=handover_mutations.DismissHandoverResult,
    )
    take_over_session = plain(
        "Fork a live, idle session now, in a sandboxed terminal.",
        resolver=handover_mutations.take_over_session,
        graphql_type=handover_mutations.TakeOverSessionResult,
    )
    send_prompt = plain(
        "Type a prompt into an idle agent in a terminal.",
        resolver=handover_mutations.send_prompt,
        graphql_type=handover_mutations.SendPromptResult,
    )
    answer_request = plain(
        "Answer what a live session asks, sealed by a paired device's key.",
        resolver=request_mutations.answer_request,
        graphql_type=request_mutations.AnswerRequestResult,
    )
    issue_terminal_ticket = plain(
        "Make a ticket with which one client attaches to a terminal once.",
        resolver=terminal_mutations.issue_terminal_ticket,
        graphql_type=terminal_mutations.IssueTerminalTicketResult,
    )
    create_pairing = plain(
        "Open a pairing: its link is for the device, as QR code or as text.",
        resolver=device_mutations.create_pairing,
        graphql_type=device_mutations.CreatePairingResult,
    )
    pair_device = plain(
        "Ask to be paired, with a proof that the link was read. Needs no token.",
        resolver=device_mutations.pair_device,
        graphql_type=device_mutations.PairDeviceResult,
    )
    confirm_pairing = plain(
        "Take the device in that shows the code.",
        resolver=device_mutations.confirm_pairing,
        graphql_type=device_mutations.ConfirmPairingResult,
    )
    cancel_pairing = plain(
        "End a pairing; its link is good for nothing then.",
        resolver=device_mutations.cancel_pairing,
        graphql_type=device_mutations.CancelPairingResult,
    )
    register_push_endpoint = plain(
        "Have the calling device told, while it is away, that a question waits or that "
        "the devices changed. Messages hold no content. The same address again is one.",
        resolver=push_mutations.register_push_endpoint,
        graphql_type=push_mutations.RegisterPushEndpointResult,
    )
    remove_push_endpoint = plain(
        "Forget a push endpoint: the caller's own, or anyone's for `ADMIN`.",
        resolver=push_mutations.remove_push_endpoint,
        graphql_type=push_mutations.RemovePushEndpointResult,
    )
    rename_device = plain(
        "Give a device another name.",
        resolver=device_mutations.rename_device,
        graphql_type=device_mutations.RenameDeviceResult,
    )
    revoke_device = plain(
        "Cut a device off for good: its token, its connections, what was sealed for "
        "it.",
        resolver=device_mutations.revoke_device,
        graphql_type=device_mutations.RevokeDeviceResult,
    )
    refresh_device_token = plain(
        "Seal a new token for the calling device.",
        resolver=device_mutations.refresh_device_token,
        graphql_type=device_mutations.RefreshDeviceTokenResult,
    )


@strawberry.type(
    description=(
        "What can be followed. Every feed begins with the current rows, goes on with "
        "what changes, and can be resumed with the newest cursor."
    )
)
class Subscription:
    """What can be followed."""

    outside_session_feed = strawberry.subscription(
        resolver=feeds.follow_sessions, description="The sessions that match, live."
    )
    handover_offer_feed = strawberry.subscription(
        resolver=follow_offers,
        description="The handover offers, live, sealed for the device that follows.",
    )
    terminal_feed = strawberry.subscription(
        resolver=feeds.follow_terminals, description="The terminals, live."
    )
    device_feed = strawberry.subscription(
        resolver=device_feeds.follow_devices,
        description="The paired devices, live: a new one is told to all the others.",
    )
    pairing_feed = strawberry.subscription(
        resolver=device_feeds.follow_pairings,
        description="The pairings in the making, live, for the owner's side.",
    )
    request_feed = strawberry.subscription(
        resolver=request_feeds.follow_requests,
        description=(
            "What waits for a person, live: a request that is settled leaves by its id."
        ),
    )
    transcript_feed = strawberry.subscription(
        resolver=feeds.follow_transcript,
        description=(
            "One conversation, live: its last 50 entries first, RESET when another "
            "branch becomes the active one."
        ),
    )


def build_schema(*, is_sorted: bool = False) -> strawberry.Schema:
    """Return a fresh schema with every type in it.

    A sorted one is for printing: its unions do not find their members when they run,
    because sorting copies every type (strawberry 0.341).
    """
    return strawberry.Schema(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        types=(*ENTRY_TYPES, Base64),
        exception_handlers=user_errors.HANDLERS,
        config=StrawberryConfig(scalar_map=SCALARS, sort_schema=is_sorted),
    )


STRAWBERRY: Final = build_schema()


def core_schema() -> GraphQLSchema:
    """Return the schema as graphql-core executes it."""
    schema: Any = STRAWBERRY
    core: GraphQLSchema = schema._schema
    return core


@cache
def sealed_schema() -> GraphQLSchema:
    """Return the schema as it is executed for callers with sealed content."""
    schema: Any = build_schema()
    core: GraphQLSchema = schema._schema
    return seal_content(core)


def print_sdl() -> str:
    """Return the schema as text, sorted, as `schema.graphql` holds it."""
    return print_schema(build_schema(is_sorted=True)).rstrip() + "\n"
