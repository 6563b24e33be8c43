"""The typed errors of mutations, and the one table from our errors to them.

A mutation's result is a union of its payload and the errors it names. An error that its
union does not name becomes a top-level error with the same code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import strawberry
from strawberry.types.field import StrawberryField

from resolvers.content import plain
from resolvers.context import Info
from resolvers.terminals import Terminal
from sidestage import errors
from sidestage.errors import ErrorCode, SidestageError
from sidestage.handover import model as handover
from sidestage.ids import TerminalId
from sidestage.terminals import model

if TYPE_CHECKING:
    from resolvers.handover import HandoverOffer

LazyOffer = Annotated["HandoverOffer", strawberry.lazy("resolvers.handover")]


@strawberry.interface(
    description=(
        "What every typed error has. Select `... on UserError { code message }` in "
        "each mutation, and errors that come later are still shown."
    )
)
class UserError:
    """What every typed error has."""

    code: ErrorCode = plain("What went wrong, for programs.")
    message: str = plain("What went wrong, as a sentence for people.")


def _error(description: str) -> Callable[[type], Any]:
    return strawberry.type(description=description)


@_error("A value has the wrong form; nothing was done.")
class InvalidInput(UserError):
    """A value has the wrong form."""


@_error("No session with that id is in the current list.")
class OutsideSessionNotFound(UserError):
    """No session with that id is in the current list."""


def _terminal(
    info: Info, root: strawberry.Parent["OutsideSessionResumed"]
) -> model.Terminal | None:
    return info.context.parts.terminals.feed.get(root.terminal_id)


@_error("The session is open in a terminal of Sidestage's already.")
class OutsideSessionResumed(UserError):
    """The session is open in a terminal of Sidestage's already."""

    terminal_id: strawberry.Private[TerminalId]
    # Not `terminal`: beside the payload's, which is non-null, none could select it.
    open_terminal = strawberry.field(
        resolver=_terminal,
        graphql_type=Terminal | None,
        description="That terminal: attach to it in place of resuming.",
    )


@_error("The session is being resumed, or an agent is just starting in its folder.")
class OutsideResumeBusy(UserError):
    """The session is being resumed, or an agent is just starting there."""


@_error("The session's own process still runs.")
class OutsideSessionLive(UserError):
    """The session's own process still runs."""


@_error("The session cannot be resumed; the message says why.")
class OutsideResumeUnavailable(UserError):
    """The session cannot be resumed."""


@_error("Someone opened the conversation at the keyboard at the same moment.")
class ConversationTaken(UserError):
    """Someone opened the conversation at the keyboard."""


@_error("The idempotency key came before, with another input.")
class IdempotencyKeyReused(UserError):
    """The idempotency key came before, with another input."""


@_error("No template has that id.")
class TemplateNotFound(UserError):
    """No template has that id."""


@_error("The project does not allow that template.")
class TemplateNotAllowed(UserError):
    """The project does not allow that template."""


@_error("The sandbox cannot be set up; the message says what to install or change.")
class SandboxUnavailable(UserError):
    """The sandbox cannot be set up."""


@_error("The template's program is not installed on the host.")
class AgentNotFound(UserError):
    """The template's program is not installed."""


@_error("As many terminals run as the settings allow; close one first.")
class TerminalLimitReached(UserError):
    """As many terminals run as the settings allow."""


@_error("No terminal has that id.")
class TerminalNotFound(UserError):
    """No terminal has that id."""


@_error("The terminal's program has ended.")
class TerminalNotRunning(UserError):
    """The terminal's program has ended."""


@_error("The process that runs terminals does not answer; try again.")
class HostUnavailable(UserError):
    """The process that runs terminals does not answer."""


@_error("The program could not be started; nothing runs.")
class StartFailed(UserError):
    """The program could not be started."""


@_error("The database cannot be read or written now; nothing was changed.")
class StorageUnavailable(UserError):
    """The database cannot be read or written now."""


@_error("No project has that id.")
class ProjectNotFound(UserError):
    """No project has that id."""


@_error("The folder is registered already.")
class ProjectExists(UserError):
    """The folder is registered already."""


@_error("The folder holds more than one project may.")
class ProjectTooWide(UserError):
    """The folder holds more than one project may."""


@_error("There is no such folder on the host.")
class ProjectFolderMissing(UserError):
    """There is no such folder."""


@_error("Another folder stands where the project was registered.")
class ProjectChanged(UserError):
    """Another folder stands where the project was registered."""


@_error("As many projects are registered as are allowed.")
class ProjectLimitReached(UserError):
    """As many projects are registered as are allowed."""


@_error("No device has that id.")
class DeviceNotFound(UserError):
    """No device has that id."""


@_error("As many devices are paired as are allowed; revoke one first.")
class DeviceLimitReached(UserError):
    """As many devices are paired as are allowed; revoke one first."""


@_error("The server does not push to that address; the message says why.")
class PushEndpointRefused(UserError):
    """The server does not push to that address."""


@_error("No push endpoint that the caller may remove has that id.")
class PushEndpointNotFound(UserError):
    """No push endpoint that the caller may remove has that id."""


@_error("The device has as many push endpoints as are allowed; remove one first.")
class PushEndpointLimitReached(UserError):
    """The device has as many push endpoints as are allowed."""


@_error("The caller has no key of a paired device; nothing was done.")
class DeviceKeyRequired(UserError):
    """The caller has no key of a paired device; nothing was done."""


@_error("The pairing is unknown, expired or burnt, or the proof is wrong.")
class PairingRefused(UserError):
    """The pairing is unknown, expired or burnt, or the proof is wrong."""


@_error("The pairing has ended.")
class PairingClosed(UserError):
    """The pairing has ended."""


@_error("The code is not the one that the device shows.")
class PairingCodeWrong(UserError):
    """The code is not the one that the device shows."""


@_error("As many pairings are open as are allowed.")
class PairingLimitReached(UserError):
    """As many pairings are open as are allowed."""


@_error("The envelope is malformed, for something else, expired, or does not open.")
class EnvelopeInvalid(UserError):
    """The envelope is not good for this."""


@_error("The envelope's message id came before, in another envelope.")
class EnvelopeReplayed(UserError):
    """The message id came before, in another envelope."""


@_error("No offer has that id, or it was closed long ago.")
class OfferNotFound(UserError):
    """No offer has that id."""


def _offer(
    info: Info, root: strawberry.Parent["OfferNotOpen"]
) -> handover.Offer | None:
    return info.context.parts.handovers.feed.get(root.offer_id)


@_error("Something else became of the offer; nothing was done.")
class OfferNotOpen(UserError):
    """Something else became of the offer."""

    offer_id: strawberry.Private[str]
    offer_state: handover.OfferState = plain("What became of it.")
    # Not `offer`: beside the payload's, which is non-null, none could select it.
    current_offer = strawberry.field(
        resolver=_offer,
        graphql_type=LazyOffer | None,
        description="The offer as it is now.",
    )


@_error("The agent's program would take the answer as a command; nothing was sent.")
class AnswerStartsACommand(UserError):
    """The agent's program would take the answer as a command."""


@_error("The agent works, asks or has ended, so nothing can be handed to it now.")
class AgentNotIdle(UserError):
    """The agent is not waiting for a prompt."""


@_error("The text could not be typed into the agent's prompt box; nothing was sent.")
class PromptNotSent(UserError):
    """The text could not be typed."""


@_error("An agent's settings file cannot be parsed; no file was touched.")
class HooksUnreadable(UserError):
    """An agent's settings file cannot be parsed."""


@_error("An agent's settings file cannot be written.")
class HooksNotWritten(UserError):
    """An agent's settings file cannot be written."""


@_error("No request of an agent has that id, or it was settled long ago.")
class RequestNotFound(UserError):
    """No request of an agent has that id."""


@_error("The request is settled, or another answer is on its way; nothing was sent.")
class RequestSettled(UserError):
    """The request is settled, or being answered."""


@_error("The agent no longer waits for a device: its own dialog is where to answer.")
class RequestKeyboardOnly(UserError):
    """The agent no longer waits for a device."""


@_error("The time in which a device could answer is over; nothing was sent.")
class RequestTimedOut(UserError):
    """The time in which a device could answer is over."""


@_error("What was shown is not what the agent asks; nothing was sent.")
class RequestChanged(UserError):
    """What was shown is not what the agent asks."""


@_error("The device may not choose that change of the agent's permissions.")
class SuggestionNotAllowed(UserError):
    """The device may not choose that change of the agent's permissions."""


TABLE: Final[dict[type[SidestageError], type]] = {
    errors.InvalidInput: InvalidInput,
    errors.OutsideSessionNotFound: OutsideSessionNotFound,
    errors.OutsideSessionResumed: OutsideSessionResumed,
    errors.OutsideResumeBusy: OutsideResumeBusy,
    errors.OutsideSessionLive: OutsideSessionLive,
    errors.OutsideResumeUnavailable: OutsideResumeUnavailable,
    errors.ConversationTaken: ConversationTaken,
    errors.IdempotencyKeyReused: IdempotencyKeyReused,
    errors.TemplateNotFound: TemplateNotFound,
    errors.TemplateNotAllowed: TemplateNotAllowed,
    errors.SandboxUnavailable: SandboxUnavailable,
    errors.AgentNotFound: AgentNotFound,
    errors.TerminalLimitReached: TerminalLimitReached,
    errors.TerminalNotFound: TerminalNotFound,
    errors.TerminalNotRunning: TerminalNotRunning,
    errors.HostUnavailable: HostUnavailable,
    errors.StartFailed: StartFailed,
    errors.StorageUnavailable: StorageUnavailable,
    errors.ProjectNotFound: ProjectNotFound,
    errors.ProjectExists: ProjectExists,
    errors.ProjectTooWide: ProjectTooWide,
    errors.ProjectFolderMissing: ProjectFolderMissing,
    errors.ProjectChanged: ProjectChanged,
    errors.ProjectLimitReached: ProjectLimitReached,
    errors.DeviceNotFound: DeviceNotFound,
    errors.DeviceLimitReached: DeviceLimitReached,
    errors.PushEndpointRefused: PushEndpointRefused,
    errors.PushEndpointNotFound: PushEndpointNotFound,
    errors.PushEndpointLimitReached: PushEndpointLimitReached,
    errors.DeviceKeyRequired: DeviceKeyRequired,
    errors.PairingRefused: PairingRefused,
    errors.PairingClosed: PairingClosed,
    errors.PairingCodeWrong: PairingCodeWrong,
    errors.PairingLimitReached: PairingLimitReached,
    errors.EnvelopeInvalid: EnvelopeInvalid,
    errors.EnvelopeReplayed: EnvelopeReplayed,
    errors.OfferNotFound: OfferNotFound,
    errors.OfferNotOpen: OfferNotOpen,
    errors.AnswerStartsACommand: AnswerStartsACommand,
    errors.AgentNotIdle: AgentNotIdle,
    errors.PromptNotSent: PromptNotSent,
    errors.HooksUnreadable: HooksUnreadable,
    errors.HooksNotWritten: HooksNotWritten,
    errors.RequestNotFound: RequestNotFound,
    errors.RequestSettled: RequestSettled,
    errors.RequestKeyboardOnly: RequestKeyboardOnly,
    errors.RequestTimedOut: RequestTimedOut,
    errors.RequestChanged: RequestChanged,
    errors.SuggestionNotAllowed: SuggestionNotAllowed,
}


@dataclass(frozen=True)
class TypedError:
    """Turns one class of our errors into its GraphQL type, for strawberry."""

    exception_type: type[SidestageError]
    error_type: type

    def handle(
        self, exception: SidestageError, *, field: StrawberryField, info: Info
    ) -> object:
        """Return the GraphQL value of *exception*."""
        del field, info
        values: dict[str, object] = {
            "code": exception.code,
            "message": str(exception),
        }
        if isinstance(exception, errors.OutsideSessionResumed):
            values["terminal_id"] = exception.terminal_id
        if isinstance(exception, errors.OfferNotOpen):
            values["offer_id"] = exception.offer_id
            values["offer_state"] = handover.OfferState(exception.state)
        return self.error_type(**values)


HANDLERS: Final = tuple(TypedError(raised, shown) for raised, shown in TABLE.items())
