"""Mutations that continue a session elsewhere: answers, take-overs, prompts."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.envelopes import EnvelopeInput, read_envelope
from resolvers.handover import HandoverOffer
from resolvers.inputs import checked_id, checked_key
from resolvers.terminal_mutations import COLS, ROWS, TerminalTicket, check_size
from resolvers.terminals import Terminal
from sidestage.envelopes.envelope import Purpose
from sidestage.errors import InvalidInput
from sidestage.handover.model import Offer
from sidestage.ids import SessionId, TerminalId, is_session_id
from sidestage.terminals import desk, forks, model
from sidestage.terminals.desk import TicketMode

TEXT_LIMIT_CHARACTERS = 20_000
"""Prompts have 8,000 at most once they are cleaned; this only bounds the work."""
KEY = (
    "A fresh UUID, kept for retries: the same key for the same session gives the same "
    "terminal, and starts nothing again."
)


@strawberry.input(description="A sealed answer to an offer.")
class AnswerHandoverInput:
    """A sealed answer to an offer."""

    offer_id: strawberry.ID = strawberry.field(description="The offer.")
    envelope: EnvelopeInput = strawberry.field(
        description=(
            "The answer, with question and summary as the offer had them, sealed by "
            "the calling device with the purpose `handover-answer`. Its `messageId` is "
            "the idempotency key."
        )
    )


@strawberry.input(description="An offer to put away.")
class DismissHandoverInput:
    """An offer to put away."""

    offer_id: strawberry.ID = strawberry.field(description="The offer.")


@strawberry.input(description="A live session to go on with elsewhere.")
class TakeOverSessionInput:
    """A live session to go on with elsewhere."""

    session_id: strawberry.ID = strawberry.field(description="The session.")
    cols: int = strawberry.field(default=forks.COLS, description=COLS)
    rows: int = strawberry.field(default=forks.ROWS, description=ROWS)
    idempotency_key: str | None = strawberry.field(default=None, description=KEY)


@strawberry.input(description="A prompt for the agent in a terminal.")
class SendPromptInput:
    """A prompt for the agent in a terminal."""

    terminal_id: strawberry.ID = strawberry.field(description="The terminal.")
    text: str = strawberry.field(
        description=(
            "What to type, 1 to 8000 characters, then Enter. As at the keyboard, a "
            "leading `/` runs a command and a leading `!` a shell's."
        )
    )


@strawberry.type(description="The answer is on its way, or has arrived.")
class AnswerHandoverPayload:
    """The answer is on its way, or has arrived."""

    offer: Offer = plain("The offer as it is now.", graphql_type=HandoverOffer)


@strawberry.type(description="The offer is put away.")
class DismissHandoverPayload:
    """The offer is put away."""

    offer: Offer = plain("The offer.", graphql_type=HandoverOffer)


@strawberry.type(description="A fork of the session runs.")
class TakeOverSessionPayload:
    """A fork of the session runs."""

    terminal: model.Terminal = plain("The terminal it runs in.", graphql_type=Terminal)
    ticket: desk.Ticket = plain(
        "A fresh ticket for that terminal.", graphql_type=TerminalTicket
    )
    handed_off: bool = plain(
        "Whether the session was handed off. False when its keyboard was used at the "
        "same moment: then it goes on there, and this is a plain fork."
    )


@strawberry.type(description="The prompt was typed and sent.")
class SendPromptPayload:
    """The prompt was typed and sent."""

    terminal: model.Terminal = plain("The terminal.", graphql_type=Terminal)


AnswerHandoverResult: TypeAlias = Annotated[
    AnswerHandoverPayload
    | errors.InvalidInput
    | errors.AnswerStartsACommand
    | errors.OfferNotFound
    | errors.OfferNotOpen
    | errors.DeviceKeyRequired
    | errors.EnvelopeInvalid
    | errors.EnvelopeReplayed
    | errors.AgentNotIdle
    | errors.OutsideSessionNotFound
    | errors.OutsideSessionResumed
    | errors.OutsideResumeUnavailable
    | errors.TemplateNotFound
    | errors.TemplateNotAllowed
    | errors.ProjectNotFound
    | errors.ProjectChanged
    | errors.ProjectFolderMissing
    | errors.SandboxUnavailable
    | errors.AgentNotFound
    | errors.TerminalLimitReached
    | errors.StartFailed
    | errors.HostUnavailable,
    strawberry.union(
        name="AnswerHandoverResult",
        description="The payload, or why the answer is not on its way.",
    ),
]
DismissHandoverResult: TypeAlias = Annotated[
    DismissHandoverPayload
    | errors.InvalidInput
    | errors.OfferNotFound
    | errors.OfferNotOpen,
    strawberry.union(
        name="DismissHandoverResult",
        description="The payload, or why it was not put away.",
    ),
]
TakeOverSessionResult: TypeAlias = Annotated[
    TakeOverSessionPayload
    | errors.InvalidInput
    | errors.AgentNotIdle
    | errors.OutsideSessionNotFound
    | errors.OutsideSessionResumed
    | errors.OutsideResumeUnavailable
    | errors.TemplateNotFound
    | errors.TemplateNotAllowed
    | errors.ProjectNotFound
    | errors.ProjectChanged
    | errors.ProjectFolderMissing
    | errors.SandboxUnavailable
    | errors.AgentNotFound
    | errors.TerminalLimitReached
    | errors.StartFailed
    | errors.HostUnavailable,
    strawberry.union(
        name="TakeOverSessionResult",
        description="The payload, or why nothing was started.",
    ),
]
SendPromptResult: TypeAlias = Annotated[
    SendPromptPayload
    | errors.InvalidInput
    | errors.TerminalNotFound
    | errors.TerminalNotRunning
    | errors.AgentNotIdle
    | errors.PromptNotSent
    | errors.HostUnavailable,
    strawberry.union(
        name="SendPromptResult",
        description="The payload, or why nothing was sent.",
    ),
]

AnswerInput = Annotated[
    AnswerHandoverInput, strawberry.argument(description="The answer.")
]
DismissInput = Annotated[
    DismissHandoverInput, strawberry.argument(description="What to put away.")
]
TakeOverInput = Annotated[
    TakeOverSessionInput, strawberry.argument(description="What to take over.")
]
PromptInput = Annotated[
    SendPromptInput, strawberry.argument(description="What to type, and where.")
]


async def answer_handover(
    info: Info,
    input: AnswerInput,  # noqa: A002 -- the schema's name
) -> AnswerHandoverPayload:
    """Bring a sealed answer on its way."""
    envelope = await read_envelope(
        info.context, input.envelope, Purpose.HANDOVER_ANSWER
    )
    offer = await info.context.parts.handovers.answer(
        checked_id("offerId", input.offer_id),
        envelope,
        actor=info.context.principal,
    )
    return AnswerHandoverPayload(offer=offer)


async def dismiss_handover(
    info: Info,
    input: DismissInput,  # noqa: A002 -- the schema's name
) -> DismissHandoverPayload:
    """Put an offer away."""
    offer = await info.context.parts.handovers.dismiss(
        checked_id("offerId", input.offer_id), actor=info.context.principal
    )
    return DismissHandoverPayload(offer=offer)


async def take_over_session(
    info: Info,
    input: TakeOverInput,  # noqa: A002 -- the schema's name
) -> TakeOverSessionPayload:
    """Fork a live, idle session now."""
    if not is_session_id(input.session_id):
        raise InvalidInput("That is not an outside session id.")
    check_size(input.cols, input.rows)
    taken = await info.context.parts.handovers.take_over(
        SessionId(input.session_id),
        cols=input.cols,
        rows=input.rows,
        idempotency_key=checked_key(input.idempotency_key),
        actor=info.context.principal,
    )
    ticket = info.context.parts.terminals.issue_ticket(
        taken.terminal.id, mode=TicketMode.CONTROL, actor=info.context.principal
    )
    return TakeOverSessionPayload(
        terminal=taken.terminal, ticket=ticket, handed_off=taken.handed_off
    )


async def send_prompt(
    info: Info,
    input: PromptInput,  # noqa: A002 -- the schema's name
) -> SendPromptPayload:
    """Type a prompt into an idle agent in a terminal."""
    if len(input.text) > TEXT_LIMIT_CHARACTERS:
        raise InvalidInput("A prompt has 1 to 8000 characters.")
    terminal = await info.context.parts.handovers.send_prompt(
        TerminalId(checked_id("terminalId", input.terminal_id)),
        input.text,
        actor=info.context.principal,
    )
    return SendPromptPayload(terminal=terminal)
