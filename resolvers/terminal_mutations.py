"""Mutations of terminals: start, resume, change, end, and tickets."""

from datetime import datetime
from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.inputs import (
    NAME_LIMIT_CHARACTERS,
    checked_id,
    checked_key,
    checked_name,
    checked_text,
)
from resolvers.terminals import Terminal
from sidestage.errors import InvalidInput
from sidestage.ids import ProjectId, TemplateId, TerminalId, is_session_id
from sidestage.terminals import desk, model
from sidestage.terminals.desk import TicketMode

COLS = "The terminal's width in cells, 1 to 500."
ROWS = "The terminal's height in cells, 1 to 500."
KEY = (
    "A fresh UUID, kept for retries: within 24 hours the same key with the same input "
    "gives the same terminal with a fresh ticket, and starts nothing again."
)


@strawberry.input(description="An ended session to resume.")
class ResumeOutsideSessionInput:
    """An ended session to resume."""

    session_id: strawberry.ID = strawberry.field(description="The session.")
    cols: int = strawberry.field(description=COLS)
    rows: int = strawberry.field(description=ROWS)
    idempotency_key: str | None = strawberry.field(default=None, description=KEY)


@strawberry.input(description="A program to start in a project's folder.")
class StartTerminalInput:
    """A program to start in a project's folder."""

    project_id: strawberry.ID = strawberry.field(description="The project.")
    template: strawberry.ID = strawberry.field(description="What to start.")
    name: str | None = strawberry.field(
        default=None, description="What to call it; the template's title if left out."
    )
    cols: int = strawberry.field(description=COLS)
    rows: int = strawberry.field(description=ROWS)
    idempotency_key: str | None = strawberry.field(default=None, description=KEY)


@strawberry.input(description="A terminal and its new name.")
class RenameTerminalInput:
    """A terminal and its new name."""

    terminal_id: strawberry.ID = strawberry.field(description="The terminal.")
    name: str = strawberry.field(description="Its new name.")


@strawberry.input(description="A terminal and its new size.")
class ResizeTerminalInput:
    """A terminal and its new size."""

    terminal_id: strawberry.ID = strawberry.field(description="The terminal.")
    cols: int = strawberry.field(description=COLS)
    rows: int = strawberry.field(description=ROWS)


@strawberry.input(description="A terminal to end and forget.")
class CloseTerminalInput:
    """A terminal to end and forget."""

    terminal_id: strawberry.ID = strawberry.field(description="The terminal.")


@strawberry.input(description="A terminal to attach to.")
class IssueTerminalTicketInput:
    """A terminal to attach to."""

    terminal_id: strawberry.ID = strawberry.field(description="The terminal.")
    mode: TicketMode = strawberry.field(
        default=TicketMode.CONTROL, description="What the ticket admits to."
    )


@strawberry.type(
    description=(
        "Admits one client to one terminal once: open the companion WebSocket at "
        "`socketPath` below the server's base address, and send `secret` first."
    )
)
class TerminalTicket:
    """Admits one client to one terminal once."""

    secret: str = plain("The secret; never put it into an address or a log.")
    mode: TicketMode = plain("What it admits to.")
    expires_at: datetime = plain("Until when it must be used.")
    socket_path: str = plain("The path of the companion WebSocket.")


@strawberry.type(description="The session runs in a terminal of Sidestage's now.")
class ResumeOutsideSessionPayload:
    """The session runs in a terminal of Sidestage's now."""

    terminal: model.Terminal = plain("The terminal it runs in.", graphql_type=Terminal)
    ticket: desk.Ticket = plain(
        "A fresh ticket for that terminal.", graphql_type=TerminalTicket
    )


@strawberry.type(description="The program runs.")
class StartTerminalPayload:
    """The program runs."""

    terminal: model.Terminal = plain("The terminal it runs in.", graphql_type=Terminal)
    ticket: desk.Ticket = plain(
        "A fresh ticket for that terminal.", graphql_type=TerminalTicket
    )


@strawberry.type(description="The terminal has its new name.")
class RenameTerminalPayload:
    """The terminal has its new name."""

    terminal: model.Terminal = plain("The terminal.", graphql_type=Terminal)


@strawberry.type(description="The terminal has its new size.")
class ResizeTerminalPayload:
    """The terminal has its new size."""

    terminal: model.Terminal = plain("The terminal.", graphql_type=Terminal)


@strawberry.type(description="Every process of the terminal has ended.")
class CloseTerminalPayload:
    """Every process of the terminal has ended."""

    terminal: model.Terminal = plain("The terminal as it was.", graphql_type=Terminal)


@strawberry.type(description="The ticket is good for 60 seconds.")
class IssueTerminalTicketPayload:
    """The ticket is good for 60 seconds."""

    ticket: desk.Ticket = plain("The ticket.", graphql_type=TerminalTicket)


ResumeOutsideSessionResult: TypeAlias = Annotated[
    ResumeOutsideSessionPayload
    | errors.InvalidInput
    | errors.OutsideSessionNotFound
    | errors.OutsideSessionResumed
    | errors.OutsideResumeBusy
    | errors.OutsideSessionLive
    | errors.OutsideResumeUnavailable
    | errors.ConversationTaken
    | errors.IdempotencyKeyReused
    | errors.TemplateNotFound
    | errors.TemplateNotAllowed
    | errors.ProjectNotFound
    | errors.ProjectChanged
    | errors.ProjectFolderMissing
    | errors.SandboxUnavailable
    | errors.AgentNotFound
    | errors.TerminalLimitReached
    | errors.StartFailed
    | errors.HostUnavailable
    | errors.StorageUnavailable,
    strawberry.union(
        name="ResumeOutsideSessionResult",
        description="The payload, or why nothing was started.",
    ),
]
StartTerminalResult: TypeAlias = Annotated[
    StartTerminalPayload
    | errors.InvalidInput
    | errors.IdempotencyKeyReused
    | errors.ProjectNotFound
    | errors.ProjectChanged
    | errors.ProjectFolderMissing
    | errors.TemplateNotFound
    | errors.TemplateNotAllowed
    | errors.SandboxUnavailable
    | errors.AgentNotFound
    | errors.TerminalLimitReached
    | errors.StartFailed
    | errors.HostUnavailable
    | errors.StorageUnavailable,
    strawberry.union(
        name="StartTerminalResult",
        description="The payload, or why nothing was started.",
    ),
]
RenameTerminalResult: TypeAlias = Annotated[
    RenameTerminalPayload
    | errors.InvalidInput
    | errors.TerminalNotFound
    | errors.StorageUnavailable,
    strawberry.union(
        name="RenameTerminalResult",
        description="The payload, or why it kept its name.",
    ),
]
ResizeTerminalResult: TypeAlias = Annotated[
    ResizeTerminalPayload
    | errors.InvalidInput
    | errors.TerminalNotFound
    | errors.TerminalNotRunning
    | errors.HostUnavailable,
    strawberry.union(
        name="ResizeTerminalResult",
        description="The payload, or why it kept its size.",
    ),
]
CloseTerminalResult: TypeAlias = Annotated[
    CloseTerminalPayload
    | errors.InvalidInput
    | errors.TerminalNotFound
    | errors.HostUnavailable
    | errors.StorageUnavailable,
    strawberry.union(
        name="CloseTerminalResult",
        description="The payload, or why it was not closed.",
    ),
]
IssueTerminalTicketResult: TypeAlias = Annotated[
    IssueTerminalTicketPayload | errors.InvalidInput | errors.TerminalNotFound,
    strawberry.union(
        name="IssueTerminalTicketResult",
        description="The payload, or why there is no ticket.",
    ),
]

ResumeInput = Annotated[
    ResumeOutsideSessionInput, strawberry.argument(description="What to resume.")
]
StartInput = Annotated[
    StartTerminalInput, strawberry.argument(description="What to start.")
]
RenameInput = Annotated[
    RenameTerminalInput, strawberry.argument(description="What to rename.")
]
ResizeInput = Annotated[
    ResizeTerminalInput, strawberry.argument(description="What to resize.")
]
CloseInput = Annotated[
    CloseTerminalInput, strawberry.argument(description="What to close.")
]
TicketInput = Annotated[
    IssueTerminalTicketInput, strawberry.argument(description="What to attach to.")
]


def check_size(cols: int, rows: int) -> None:
    """Raise `InvalidInput` for a size no terminal can have."""
    limit = model.SIDE_LIMIT_CELLS
    if not (1 <= cols <= limit and 1 <= rows <= limit):
        raise InvalidInput(f"cols and rows must be whole numbers from 1 to {limit}")


def _terminal_id(id_: str) -> TerminalId:
    return TerminalId(checked_id("terminalId", id_))


async def resume_outside_session(
    info: Info,
    input: ResumeInput,  # noqa: A002 -- the schema's name
) -> ResumeOutsideSessionPayload:
    """Resume an ended session on the same conversation."""
    if not is_session_id(input.session_id):
        raise InvalidInput("That is not an outside session id.")
    check_size(input.cols, input.rows)
    started = await info.context.parts.terminals.resume(
        session_id=input.session_id,
        cols=input.cols,
        rows=input.rows,
        idempotency_key=checked_key(input.idempotency_key),
        actor=info.context.principal,
    )
    return ResumeOutsideSessionPayload(terminal=started.terminal, ticket=started.ticket)


async def start_terminal(
    info: Info,
    input: StartInput,  # noqa: A002 -- the schema's name
) -> StartTerminalPayload:
    """Start a program in a project's folder."""
    check_size(input.cols, input.rows)
    started = await info.context.parts.terminals.start(
        project_id=ProjectId(checked_id("projectId", input.project_id)),
        template=TemplateId(checked_id("template", input.template)),
        name=checked_name(input.name),
        cols=input.cols,
        rows=input.rows,
        idempotency_key=checked_key(input.idempotency_key),
        actor=info.context.principal,
    )
    return StartTerminalPayload(terminal=started.terminal, ticket=started.ticket)


async def rename_terminal(
    info: Info,
    input: RenameInput,  # noqa: A002 -- the schema's name
) -> RenameTerminalPayload:
    """Give a terminal a name."""
    terminal = await info.context.parts.terminals.rename(
        _terminal_id(input.terminal_id),
        name=checked_text("name", input.name, NAME_LIMIT_CHARACTERS),
        actor=info.context.principal,
    )
    return RenameTerminalPayload(terminal=terminal)


async def resize_terminal(
    info: Info,
    input: ResizeInput,  # noqa: A002 -- the schema's name
) -> ResizeTerminalPayload:
    """Set a terminal's size."""
    check_size(input.cols, input.rows)
    terminal = await info.context.parts.terminals.resize(
        _terminal_id(input.terminal_id),
        cols=input.cols,
        rows=input.rows,
        actor=info.context.principal,
    )
    return ResizeTerminalPayload(terminal=terminal)


async def close_terminal(
    info: Info,
    input: CloseInput,  # noqa: A002 -- the schema's name
) -> CloseTerminalPayload:
    """End every process of a terminal and forget it."""
    terminal = await info.context.parts.terminals.close(
        _terminal_id(input.terminal_id), actor=info.context.principal
    )
    return CloseTerminalPayload(terminal=terminal)


def issue_terminal_ticket(
    info: Info,
    input: TicketInput,  # noqa: A002 -- the schema's name
) -> IssueTerminalTicketPayload:
    """Make a ticket for a terminal."""
    ticket = info.context.parts.terminals.issue_ticket(
        _terminal_id(input.terminal_id), mode=input.mode, actor=info.context.principal
    )
    return IssueTerminalTicketPayload(ticket=ticket)
