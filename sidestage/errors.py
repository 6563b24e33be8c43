"""What can go wrong on purpose: one class a mistake, one stable code a class.

A client switches on the code; the sentence is for a person. Classes know no HTTP
status: `api`, `resolvers` and `terminal_host` each map codes to what their protocol
says. `docs/errors.md` lists them all.
"""

from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """Every stable code, as clients meet it."""

    INVALID_REQUEST = "INVALID_REQUEST"
    OUTSIDE_SESSION_NOT_FOUND = "OUTSIDE_SESSION_NOT_FOUND"
    OUTSIDE_SESSION_RESUMED = "OUTSIDE_SESSION_RESUMED"
    OUTSIDE_RESUME_BUSY = "OUTSIDE_RESUME_BUSY"
    OUTSIDE_SESSION_LIVE = "OUTSIDE_SESSION_LIVE"
    OUTSIDE_RESUME_UNAVAILABLE = "OUTSIDE_RESUME_UNAVAILABLE"
    CONVERSATION_TAKEN = "CONVERSATION_TAKEN"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    TEMPLATE_NOT_FOUND = "TEMPLATE_NOT_FOUND"
    TEMPLATE_NOT_ALLOWED = "TEMPLATE_NOT_ALLOWED"
    SANDBOX_UNAVAILABLE = "SANDBOX_UNAVAILABLE"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    TERMINAL_LIMIT_REACHED = "TERMINAL_LIMIT_REACHED"
    TERMINAL_NOT_FOUND = "TERMINAL_NOT_FOUND"
    TERMINAL_NOT_RUNNING = "TERMINAL_NOT_RUNNING"
    TERMINAL_NOT_ENDED = "TERMINAL_NOT_ENDED"
    TICKET_REFUSED = "TICKET_REFUSED"
    HOST_UNAVAILABLE = "HOST_UNAVAILABLE"
    START_FAILED = "START_FAILED"
    PROJECT_NOT_FOUND = "PROJECT_NOT_FOUND"
    PROJECT_EXISTS = "PROJECT_EXISTS"
    PROJECT_TOO_WIDE = "PROJECT_TOO_WIDE"
    PROJECT_FOLDER_MISSING = "PROJECT_FOLDER_MISSING"
    PROJECT_CHANGED = "PROJECT_CHANGED"
    PROJECT_LIMIT_REACHED = "PROJECT_LIMIT_REACHED"
    DEVICE_NOT_FOUND = "DEVICE_NOT_FOUND"
    DEVICE_LIMIT_REACHED = "DEVICE_LIMIT_REACHED"
    PAIRING_REFUSED = "PAIRING_REFUSED"
    PAIRING_CLOSED = "PAIRING_CLOSED"
    PAIRING_CODE_WRONG = "PAIRING_CODE_WRONG"
    PAIRING_LIMIT_REACHED = "PAIRING_LIMIT_REACHED"
    PUSH_ENDPOINT_REFUSED = "PUSH_ENDPOINT_REFUSED"
    PUSH_ENDPOINT_NOT_FOUND = "PUSH_ENDPOINT_NOT_FOUND"
    PUSH_ENDPOINT_LIMIT_REACHED = "PUSH_ENDPOINT_LIMIT_REACHED"
    HOOKS_UNREADABLE = "HOOKS_UNREADABLE"
    HOOKS_NOT_WRITTEN = "HOOKS_NOT_WRITTEN"
    DEVICE_KEY_REQUIRED = "DEVICE_KEY_REQUIRED"
    ENVELOPE_INVALID = "ENVELOPE_INVALID"
    ENVELOPE_REPLAYED = "ENVELOPE_REPLAYED"
    REQUEST_NOT_FOUND = "REQUEST_NOT_FOUND"
    REQUEST_SETTLED = "REQUEST_SETTLED"
    REQUEST_KEYBOARD_ONLY = "REQUEST_KEYBOARD_ONLY"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    REQUEST_CHANGED = "REQUEST_CHANGED"
    SUGGESTION_NOT_ALLOWED = "SUGGESTION_NOT_ALLOWED"
    OFFER_NOT_FOUND = "OFFER_NOT_FOUND"
    OFFER_NOT_OPEN = "OFFER_NOT_OPEN"
    ANSWER_STARTS_A_COMMAND = "ANSWER_STARTS_A_COMMAND"
    AGENT_NOT_IDLE = "AGENT_NOT_IDLE"
    PROMPT_NOT_SENT = "PROMPT_NOT_SENT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RATE_LIMITED = "RATE_LIMITED"
    CLIENT_TOO_OLD = "CLIENT_TOO_OLD"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    OPERATION_TOO_LARGE = "OPERATION_TOO_LARGE"
    SUBSCRIPTION_LIMIT_REACHED = "SUBSCRIPTION_LIMIT_REACHED"
    USE_STREAMING_TRANSPORT = "USE_STREAMING_TRANSPORT"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    SETTINGS_INVALID = "SETTINGS_INVALID"
    STATE_FOLDER_UNSAFE = "STATE_FOLDER_UNSAFE"
    INTERNAL = "INTERNAL"


class SidestageError(Exception):
    """An error we raise on purpose; `str()` of it is fit for a person to read."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL


class InvalidInput(SidestageError):
    """A value has the wrong form; nothing was started."""

    code = ErrorCode.INVALID_REQUEST


class BadUserInput(SidestageError):
    """An argument of a query makes no sense: an id, a cursor, a page size."""

    code = ErrorCode.BAD_USER_INPUT


class OperationTooLarge(SidestageError):
    """An operation is over a limit: depth, aliases, tokens, cost or bytes."""

    code = ErrorCode.OPERATION_TOO_LARGE


class ClientTooOld(SidestageError):
    """The client says it is older than the oldest one this server serves."""

    code = ErrorCode.CLIENT_TOO_OLD


class SubscriptionLimitReached(SidestageError):
    """As many subscriptions run on one connection as the limit allows."""

    code = ErrorCode.SUBSCRIPTION_LIMIT_REACHED


class UseStreamingTransport(SidestageError):
    """A subscription came by a request that can carry one answer only."""

    code = ErrorCode.USE_STREAMING_TRANSPORT


class Unauthenticated(SidestageError):
    """No token, or one that is unknown, expired or revoked."""

    code = ErrorCode.UNAUTHENTICATED


class PermissionDenied(SidestageError):
    """The token is good, but its scopes do not reach this."""

    code = ErrorCode.PERMISSION_DENIED


class RateLimited(SidestageError):
    """Too much, too fast; *retry_after_ms* says when to come back."""

    code = ErrorCode.RATE_LIMITED

    def __init__(self, message: str, *, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class StorageUnavailable(SidestageError):
    """The database cannot be read or written now; the sentence says why.

    What was to be written is not; nothing that was written is lost.
    """

    code = ErrorCode.STORAGE_UNAVAILABLE


class SettingsInvalid(SidestageError):
    """A setting cannot be used; the sentence names it and what it may be."""

    code = ErrorCode.SETTINGS_INVALID


class StateFolderUnsafe(SidestageError):
    """The state folder is not ours alone, so no secret may be put there."""

    code = ErrorCode.STATE_FOLDER_UNSAFE


class OutsideSessionNotFound(SidestageError):
    """No session with that id is in the current list."""

    code = ErrorCode.OUTSIDE_SESSION_NOT_FOUND


class OutsideSessionResumed(SidestageError):
    """The conversation is open in the terminal *terminal_id* of ours."""

    code = ErrorCode.OUTSIDE_SESSION_RESUMED

    def __init__(self, message: str, *, terminal_id: str) -> None:
        super().__init__(message)
        self.terminal_id = terminal_id


class OutsideResumeBusy(SidestageError):
    """A resume of this session is in flight, or an agent is just starting there."""

    code = ErrorCode.OUTSIDE_RESUME_BUSY


class OutsideSessionLive(SidestageError):
    """The session's own process still runs."""

    code = ErrorCode.OUTSIDE_SESSION_LIVE


class OutsideResumeUnavailable(SidestageError):
    """This session cannot be resumed; the sentence says why."""

    code = ErrorCode.OUTSIDE_RESUME_UNAVAILABLE


class ConversationTaken(SidestageError):
    """Someone else's process opened the conversation just after ours."""

    code = ErrorCode.CONVERSATION_TAKEN


class IdempotencyKeyReused(SidestageError):
    """The same key came with another input."""

    code = ErrorCode.IDEMPOTENCY_KEY_REUSED


class TemplateNotFound(SidestageError):
    """No template has that name."""

    code = ErrorCode.TEMPLATE_NOT_FOUND


class TemplateNotAllowed(SidestageError):
    """The project does not allow this template."""

    code = ErrorCode.TEMPLATE_NOT_ALLOWED


class SandboxUnavailable(SidestageError):
    """The sandbox cannot be set up; the sentence says what to install or change."""

    code = ErrorCode.SANDBOX_UNAVAILABLE


class AgentNotFound(SidestageError):
    """The template's program is not on the server's PATH."""

    code = ErrorCode.AGENT_NOT_FOUND


class TerminalLimitReached(SidestageError):
    """As many terminals run as the settings allow."""

    code = ErrorCode.TERMINAL_LIMIT_REACHED


class TerminalNotFound(SidestageError):
    """No terminal has that id."""

    code = ErrorCode.TERMINAL_NOT_FOUND


class TerminalNotRunning(SidestageError):
    """The terminal's program has ended, so it takes no input."""

    code = ErrorCode.TERMINAL_NOT_RUNNING


class TerminalNotEnded(SidestageError):
    """Processes of the terminal could not be ended; the host goes on trying."""

    code = ErrorCode.TERMINAL_NOT_ENDED


class TicketRefused(SidestageError):
    """The ticket is unknown, spent, expired, or for another terminal."""

    code = ErrorCode.TICKET_REFUSED


class HostUnavailable(SidestageError):
    """The terminal host does not answer."""

    code = ErrorCode.HOST_UNAVAILABLE


class StartFailed(SidestageError):
    """The program could not be started; nothing runs."""

    code = ErrorCode.START_FAILED


class ProjectNotFound(SidestageError):
    """No project has that id."""

    code = ErrorCode.PROJECT_NOT_FOUND


class ProjectExists(SidestageError):
    """The folder is registered already."""

    code = ErrorCode.PROJECT_EXISTS


class ProjectTooWide(SidestageError):
    """The folder would put more into a sandbox than one project."""

    code = ErrorCode.PROJECT_TOO_WIDE


class ProjectFolderMissing(SidestageError):
    """There is no such folder."""

    code = ErrorCode.PROJECT_FOLDER_MISSING


class ProjectChanged(SidestageError):
    """The folder at the project's path is not the one that was registered."""

    code = ErrorCode.PROJECT_CHANGED


class ProjectLimitReached(SidestageError):
    """As many projects are registered as the limit allows."""

    code = ErrorCode.PROJECT_LIMIT_REACHED


class DeviceNotFound(SidestageError):
    """No device has that id."""

    code = ErrorCode.DEVICE_NOT_FOUND


class DeviceLimitReached(SidestageError):
    """As many devices are paired as are allowed; revoke one first."""

    code = ErrorCode.DEVICE_LIMIT_REACHED


class PairingRefused(SidestageError):
    """The pairing is unknown, expired or burnt, or the proof is wrong: one answer."""

    code = ErrorCode.PAIRING_REFUSED


class PairingClosed(SidestageError):
    """The pairing has ended: its device is in use, or nothing can come of it."""

    code = ErrorCode.PAIRING_CLOSED


class PairingCodeWrong(SidestageError):
    """The code is not the one that the device shows."""

    code = ErrorCode.PAIRING_CODE_WRONG


class PairingLimitReached(SidestageError):
    """As many pairings are open as are allowed; finish or cancel one first."""

    code = ErrorCode.PAIRING_LIMIT_REACHED


class PushEndpointRefused(SidestageError):
    """The server does not send to that address; the sentence says why."""

    code = ErrorCode.PUSH_ENDPOINT_REFUSED


class PushEndpointNotFound(SidestageError):
    """No push endpoint that the caller may remove has that id."""

    code = ErrorCode.PUSH_ENDPOINT_NOT_FOUND


class PushEndpointLimitReached(SidestageError):
    """The device has as many push endpoints as are allowed; remove one first."""

    code = ErrorCode.PUSH_ENDPOINT_LIMIT_REACHED


class DeviceKeyRequired(SidestageError):
    """The caller has no key of a paired device, so nothing it seals counts."""

    code = ErrorCode.DEVICE_KEY_REQUIRED


class EnvelopeInvalid(SidestageError):
    """The envelope is malformed, for something else, expired, or does not open.

    *fault* names which of these, for the audit log: a value of
    `sidestage.envelopes.envelope.Fault`.
    """

    code = ErrorCode.ENVELOPE_INVALID

    def __init__(self, message: str, *, fault: str) -> None:
        super().__init__(message)
        self.fault = fault


class EnvelopeReplayed(SidestageError):
    """The message id came before, in another envelope."""

    code = ErrorCode.ENVELOPE_REPLAYED


class RequestNotFound(SidestageError):
    """No request of an agent has that id, or it is long over."""

    code = ErrorCode.REQUEST_NOT_FOUND


class RequestSettled(SidestageError):
    """The request was answered, withdrawn, or is being answered at this moment."""

    code = ErrorCode.REQUEST_SETTLED


class RequestKeyboardOnly(SidestageError):
    """The agent no longer waits for a device; its dialog at the keyboard is open."""

    code = ErrorCode.REQUEST_KEYBOARD_ONLY


class RequestTimedOut(SidestageError):
    """The time in which a device could answer is over; nothing was sent."""

    code = ErrorCode.REQUEST_TIMED_OUT


class RequestChanged(SidestageError):
    """What the answer says was shown is not what the agent asks; nothing was sent."""

    code = ErrorCode.REQUEST_CHANGED


class SuggestionNotAllowed(SidestageError):
    """The device may not choose that change of the agent's permissions."""

    code = ErrorCode.SUGGESTION_NOT_ALLOWED


class OfferNotFound(SidestageError):
    """No offer has that id, or it was closed long ago."""

    code = ErrorCode.OFFER_NOT_FOUND


class OfferNotOpen(SidestageError):
    """Something else became of the offer; *state* and *offer_id* say what and which.

    *state* is a value of `sidestage.handover.model.OfferState`.
    """

    code = ErrorCode.OFFER_NOT_OPEN

    def __init__(self, message: str, *, state: str, offer_id: str) -> None:
        super().__init__(message)
        self.state = state
        self.offer_id = offer_id


class AnswerStartsACommand(SidestageError):
    """The agent's program would take the answer as a command; nothing was sent."""

    code = ErrorCode.ANSWER_STARTS_A_COMMAND


class AgentNotIdle(SidestageError):
    """The agent works, asks or has ended, so nothing can be handed to it now."""

    code = ErrorCode.AGENT_NOT_IDLE


class PromptNotSent(SidestageError):
    """The text could not be typed into the agent's prompt box; nothing was sent."""

    code = ErrorCode.PROMPT_NOT_SENT


class HooksUnreadable(SidestageError):
    """A settings file of an agent cannot be parsed, so none was touched."""

    code = ErrorCode.HOOKS_UNREADABLE


class HooksNotWritten(SidestageError):
    """A settings file of an agent cannot be written."""

    code = ErrorCode.HOOKS_NOT_WRITTEN
