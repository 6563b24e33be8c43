"""What each error code means, for the stranger who meets it in the schema."""

from collections.abc import Mapping
from typing import Final

from sidestage.errors import ErrorCode as Code

ERROR_CODES: Final[Mapping[Code, str]] = {
    Code.INVALID_REQUEST: "A value has the wrong form; nothing was done.",
    Code.OUTSIDE_SESSION_NOT_FOUND: "No session with that id is in the list.",
    Code.OUTSIDE_SESSION_RESUMED: "The session is open in a terminal already.",
    Code.OUTSIDE_RESUME_BUSY: "It is being resumed, or an agent is just starting.",
    Code.OUTSIDE_SESSION_LIVE: "The session's own process still runs.",
    Code.OUTSIDE_RESUME_UNAVAILABLE: "It cannot be resumed; the message says why.",
    Code.CONVERSATION_TAKEN: "Someone opened the conversation at the keyboard.",
    Code.IDEMPOTENCY_KEY_REUSED: "The key came before, with another input.",
    Code.TEMPLATE_NOT_FOUND: "No template has that id.",
    Code.TEMPLATE_NOT_ALLOWED: "The project does not allow that template.",
    Code.SANDBOX_UNAVAILABLE: "The sandbox cannot be set up; the message says why.",
    Code.AGENT_NOT_FOUND: "The template's program is not installed.",
    Code.TERMINAL_LIMIT_REACHED: "As many terminals run as are allowed.",
    Code.TERMINAL_NOT_FOUND: "No terminal has that id.",
    Code.TERMINAL_NOT_RUNNING: "The terminal's program has ended.",
    Code.TICKET_REFUSED: "The ticket is spent, expired, or not for this terminal.",
    Code.HOST_UNAVAILABLE: "The process that runs terminals does not answer.",
    Code.START_FAILED: "The program could not be started; nothing runs.",
    Code.PROJECT_NOT_FOUND: "No project has that id.",
    Code.PROJECT_EXISTS: "The folder is registered already.",
    Code.PROJECT_TOO_WIDE: "The folder holds more than one project may.",
    Code.PROJECT_FOLDER_MISSING: "There is no such folder.",
    Code.PROJECT_CHANGED: "Another folder stands where the project was.",
    Code.PROJECT_LIMIT_REACHED: "As many projects are registered as are allowed.",
    Code.DEVICE_KEY_REQUIRED: "Only a paired device's key can seal this.",
    Code.ENVELOPE_INVALID: "The envelope is not good for this; nothing was done.",
    Code.ENVELOPE_REPLAYED: "The message id came before, in another envelope.",
    Code.UNAUTHENTICATED: "No token came, or one that is not good any more.",
    Code.PERMISSION_DENIED: "The token's scopes do not reach this.",
    Code.RATE_LIMITED: "Too much at once; see `retryAfterMs`.",
    Code.CLIENT_TOO_OLD: "This server serves newer clients only.",
    Code.BAD_USER_INPUT: "An argument makes no sense.",
    Code.GRAPHQL_PARSE_FAILED: "The document is not GraphQL.",
    Code.GRAPHQL_VALIDATION_FAILED: "The document does not fit the schema.",
    Code.OPERATION_TOO_LARGE: "The operation is over a limit; ask for less at once.",
    Code.SUBSCRIPTION_LIMIT_REACHED: "Too many subscriptions on one connection.",
    Code.USE_STREAMING_TRANSPORT: "Subscribe by WebSocket, SSE or multipart.",
    Code.SETTINGS_INVALID: "A setting of the server cannot be used.",
    Code.STATE_FOLDER_UNSAFE: "The server's state folder is not its owner's alone.",
    Code.INTERNAL: "A bug of ours. The message has a reference for the log.",
}
