"""The domain's enums as GraphQL shows them: every value described for a stranger."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import strawberry

from resolvers.error_texts import ERROR_CODES
from resolvers.paging_order import ORDERS, SessionOrder
from sidestage.audit import AuditOutcome
from sidestage.devices.model import ContentMode, DeviceState, PrincipalKind, Scope
from sidestage.devices.pairings import PairingEnd, PairingState
from sidestage.devices.push import PushKind
from sidestage.errors import ErrorCode, SidestageError
from sidestage.feeds import FeedKind
from sidestage.handover.model import OfferBlock, OfferDelivery, OfferState
from sidestage.requests.model import (
    RequestEnd,
    RequestKind,
    RequestState,
    RequestVerdict,
)
from sidestage.sessions.board import UsageBucket
from sidestage.sessions.hook_setup import HookState
from sidestage.sessions.model import (
    AgentKind,
    EvidenceSource,
    MessageRole,
    SessionState,
    WaitingKind,
)
from sidestage.terminals.desk import TicketMode
from sidestage.terminals.model import TerminalState

OPEN: Final = "The enum is open: treat an unknown value as UNKNOWN."


class SessionCountGroup(StrEnum):
    """By what sessions are counted."""

    STATE = "STATE"
    PROJECT = "PROJECT"
    AGENT = "AGENT"


class PairDeviceState(StrEnum):
    """How far a device that asked to be paired is."""

    PENDING = "PENDING"
    DONE = "DONE"


class ContentKind(StrEnum):
    """How much a text gives away."""

    LABEL = "LABEL"
    TEXT = "TEXT"


class HealthStatus(StrEnum):
    """How well the server is."""

    OK = "OK"
    DEGRADED = "DEGRADED"


def told_by_class(code: str) -> str | None:
    """Return the first line of the error class with that code, or None."""
    for error in SidestageError.__subclasses__():
        if error.code.value == code and error.__doc__:
            return error.__doc__.partition("\n")[0]
    return None


def describe(cls: type[StrEnum], text: str, values: Mapping[Any, str]) -> None:
    """Make *cls* a GraphQL enum with that text and one text a value."""
    strawberry.enum(cls, description=f"{text} {OPEN}")
    definition: Any = cls.__dict__["__strawberry_definition__"]
    for value in definition.values:
        # A code that was just added is told by its error's docstring meanwhile.
        value.description = values.get(cls[value.name]) or told_by_class(value.name)


describe(
    ErrorCode,
    "What went wrong, for programs. The sentence beside it is for people.",
    ERROR_CODES,
)
describe(SessionOrder, "How a list of sessions is ordered.", ORDERS)
describe(
    AgentKind,
    "Which agent program a session belongs to.",
    {
        AgentKind.CLAUDE_CODE: "Anthropic's Claude Code.",
        AgentKind.CODEX: "OpenAI's Codex.",
        AgentKind.UNKNOWN: "An agent this version does not know.",
    },
)
describe(
    SessionState,
    "What a session does, as far as it can be known.",
    {
        SessionState.RUNNING: "The agent is working.",
        SessionState.ASKING: "The agent waits for a person: see `waitingFor`.",
        SessionState.IDLE: "The agent's turn ended; its process waits for a prompt.",
        SessionState.ENDED: "No process of the session exists any more.",
        SessionState.UNKNOWN: "It cannot be told; never a guess.",
    },
)
describe(
    EvidenceSource,
    "Where a piece of evidence about a session came from.",
    {
        EvidenceSource.PROCESS: "The process table.",
        EvidenceSource.REGISTRY: "The agent program's own register of its processes.",
        EvidenceSource.TRANSCRIPT: "The conversation's file.",
        EvidenceSource.HOOK: "A hook that the agent program ran.",
        EvidenceSource.TERMINAL: "A terminal that Sidestage runs.",
    },
)
describe(
    WaitingKind,
    "What an asking session waits for.",
    {
        WaitingKind.PERMISSION: "Leave to use a tool.",
        WaitingKind.QUESTION: "An answer to a question.",
        WaitingKind.PLAN: "Approval of a plan.",
        WaitingKind.DIALOG: "Some dialog on its screen.",
        WaitingKind.UNKNOWN: "Something this version cannot name.",
    },
)
describe(
    MessageRole,
    "Who said a message.",
    {
        MessageRole.USER: "The person.",
        MessageRole.ASSISTANT: "The agent.",
    },
)
describe(
    UsageBucket,
    "How wide a point of `usage` is.",
    {
        UsageBucket.HOUR: "One hour of UTC.",
        UsageBucket.DAY: "One day of UTC.",
    },
)
describe(
    SessionCountGroup,
    "By what sessions are counted.",
    {
        SessionCountGroup.STATE: "By what they do.",
        SessionCountGroup.PROJECT: "By the registered project they belong to.",
        SessionCountGroup.AGENT: "By the agent program.",
    },
)
describe(
    TerminalState,
    "What became of a terminal.",
    {
        TerminalState.RUNNING: "Its program runs.",
        TerminalState.EXITED: "Its program ended; see `exitStatus`.",
        TerminalState.LOST: "Its host went away; only its last screen remains.",
    },
)
describe(
    TicketMode,
    "What a terminal's ticket admits to.",
    {
        TicketMode.CONTROL: "See the screen, type, set the size. Needs `TERMINAL`.",
        TicketMode.VIEW: "See the screen. Needs `READ`.",
    },
)
describe(
    RequestKind,
    "What a live session asks a person for.",
    {
        RequestKind.PERMISSION: "Leave to use a tool. Takes `allow` or `deny`.",
        RequestKind.QUESTION: "Answers to questions. Takes `answer` or `deny`.",
        RequestKind.PLAN: "Approval of a plan. Takes `allow`, or `deny` with feedback.",
    },
)
describe(
    RequestState,
    "Where a request stands.",
    {
        RequestState.PENDING: "It waits for a person; a device can answer.",
        RequestState.ANSWERING: "A device's answer is on its way to the agent.",
        RequestState.KEYBOARD_ONLY: (
            "It waits for a person, but only the agent's own dialog can answer: its "
            "hook is gone, or the time for devices is over."
        ),
        RequestState.ANSWERED: "A device's answer was handed to the agent.",
        RequestState.WITHDRAWN: "It is settled without a device: see `settledBy`.",
        RequestState.TIMED_OUT: (
            "Nobody answered in time and the agent went on. It is nobody's no."
        ),
    },
)
describe(
    RequestEnd,
    "What ended a request.",
    {
        RequestEnd.DEVICE: "A device's answer.",
        RequestEnd.KEYBOARD: "The agent's own dialog: an answer, a no, or Esc.",
        RequestEnd.SESSION_ENDED: "The agent's process ended or moved on.",
        RequestEnd.TIME_OUT: "Nobody answered in time.",
        RequestEnd.POLICY: "Its folder is not adopted any more.",
        RequestEnd.UNKNOWN: "Nobody saw how: the server was away.",
    },
)
describe(
    RequestVerdict,
    "What a device decided.",
    {
        RequestVerdict.ALLOW: "The tool may be used; the plan is approved.",
        RequestVerdict.DENY: "No, perhaps with a note to the model.",
        RequestVerdict.ANSWER: "The questions are answered.",
    },
)
describe(
    AuditOutcome,
    "How an audited action ended.",
    {
        AuditOutcome.BEGUN: "It is about to be tried; another entry says how it ended.",
        AuditOutcome.DONE: "It was done.",
        AuditOutcome.REFUSED: "It was refused; nothing happened.",
        AuditOutcome.FAILED: "It was tried and failed.",
    },
)
describe(
    FeedKind,
    "What a feed's message is.",
    {
        FeedKind.SNAPSHOT: (
            "A part of the current rows. More parts follow while `more` is true; rows "
            "you hold that were in none of them are gone."
        ),
        FeedKind.DELTA: "What changed: rows to put or replace, and rows to forget.",
        FeedKind.HEARTBEAT: "Nothing changed; the feed is alive. Keep its cursor.",
        FeedKind.RESET: "Forget every row of this feed; a SNAPSHOT follows.",
    },
)
describe(
    ContentMode,
    "Whether fields marked `@content` travel in clear.",
    {
        ContentMode.CLEAR: "They do, protected by TLS, tokens and scopes.",
        ContentMode.SEALED: (
            "They do not: texts come in envelopes or not at all, and names are "
            "withheld."
        ),
    },
)
describe(
    Scope,
    "What a token allows.",
    {
        Scope.VIEW: "States, names, folders, counts.",
        Scope.READ: "Texts: transcripts, screens, inputs of requests.",
        Scope.ANSWER: "Offers and requests, with a paired device's key.",
        Scope.TERMINAL: "Start, resume, attach to and end terminals.",
        Scope.ADMIN: "Devices, projects, policies, the audit log.",
    },
)
describe(
    PrincipalKind,
    "What kind of credential a caller showed.",
    {
        PrincipalKind.ADMIN: "The admin token of this machine.",
        PrincipalKind.LOCAL: "None: it is a process of the owner on this machine.",
        PrincipalKind.DEVICE: "A paired device's token.",
        PrincipalKind.BROWSER: "A token that was made by hand.",
        PrincipalKind.ANONYMOUS: "None.",
    },
)
describe(
    PushKind,
    "How a push endpoint is spoken to.",
    {
        PushKind.WEB_PUSH: "Web Push: a browser's push service, or UnifiedPush.",
        PushKind.WEBHOOK: "A signed POST to a relay that the owner allows.",
    },
)
describe(
    DeviceState,
    "Where a device stands in its life.",
    {
        DeviceState.PENDING: "Paired, but it has not shown its token yet.",
        DeviceState.ACTIVE: "It has shown its token.",
        DeviceState.REVOKED: "It is cut off for good.",
    },
)
describe(
    PairingState,
    "How far a pairing is.",
    {
        PairingState.OPEN: "No device proved yet that it read the link.",
        PairingState.CLAIMED: "A device did, and shows the code to type.",
        PairingState.CONFIRMED: "The code was typed; the device fetches its token.",
        PairingState.ENDED: "Nothing can come of it any more; see `end`.",
    },
)
describe(
    PairDeviceState,
    "How far a device that asked to be paired is.",
    {
        PairDeviceState.PENDING: "Show the code, and ask again in a moment.",
        PairDeviceState.DONE: "The envelope holds the device's token.",
    },
)
describe(
    PairingEnd,
    "Why nothing can come of a pairing.",
    {
        PairingEnd.EXPIRED: "Its time ran out.",
        PairingEnd.CANCELLED: "Its owner ended it, or the host's key changed.",
        PairingEnd.TWO_DEVICES: "Two devices read the link; one may be a stranger's.",
        PairingEnd.WRONG_PROOFS: "Someone guessed at the link's secret.",
        PairingEnd.WRONG_CODES: "The code was typed wrong three times.",
    },
)
describe(
    OfferState,
    "Where a handover offer stands.",
    {
        OfferState.PENDING: "It can be answered.",
        OfferState.ANSWERING: "An answer was accepted and is on its way to the agent.",
        OfferState.CONTINUED: "The answer reached the agent; see `continuation`.",
        OfferState.SUPERSEDED: "The session went on at its keyboard.",
        OfferState.DISMISSED: "It was put away, by a person or by the policy.",
        OfferState.EXPIRED: "Its time is over.",
        OfferState.CLOSED: "The session ended first; it can be resumed.",
    },
)
describe(
    OfferDelivery,
    "How an answer reaches the agent.",
    {
        OfferDelivery.FORK: (
            "In a new conversation that knows the earlier turns, in a sandboxed "
            "terminal. The session at the keyboard stays as it is."
        ),
        OfferDelivery.TYPE: "Typed into the terminal of Sidestage's it runs in.",
    },
)
describe(
    OfferBlock,
    "What keeps an accepted answer from being typed.",
    {
        OfferBlock.DIALOG: "The agent shows a dialog: trust, login, a permission.",
        OfferBlock.NOT_READY: "The agent has not got to its prompt yet.",
        OfferBlock.BUSY: "The agent works on something else.",
        OfferBlock.PROMPT_BOX_IN_USE: "Somebody's unsent text stands in its box.",
        OfferBlock.NOT_CONFIRMED: "It was sent, but no transcript shows it yet.",
        OfferBlock.TERMINAL_ENDED: "Its terminal ended first; nothing more is tried.",
    },
)
describe(
    ContentKind,
    "How much a text gives away. Take an unknown value for TEXT.",
    {
        ContentKind.LABEL: "Names, folders, branches, titles: scope `VIEW`.",
        ContentKind.TEXT: "Messages, entries, screens: scope `READ`.",
    },
)
describe(
    HealthStatus,
    "How well the server is.",
    {
        HealthStatus.OK: "Everything works.",
        HealthStatus.DEGRADED: "Something does not work fully: see `notes`.",
    },
)
describe(
    HookState,
    "How Sidestage's hooks stand in a settings file.",
    {
        HookState.INSTALLED: "They are installed.",
        HookState.OUTDATED: "Some are missing, or they are another server's.",
        HookState.ABSENT: "None of them is there.",
        HookState.UNREADABLE: "The file cannot be parsed; it is left alone.",
    },
)
