"""Which scope each field of the schema needs: every `Type.field` has one row.

Checks hang on types and fields, not on root fields, because `node` reaches everything.
What an operation selects is held to this table before it runs (`api/operations.py`).
Arguments that give away more than their field are checked where they are read: the
session filter's `text`, audit entries in `node`, a ticket's mode.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sidestage.devices.model import Scope

_ANONYMOUS: Final = """
Query: server
Server: version schemaVersion
Mutation: pairDevice
PairDevicePayload: state envelope retryAfterMs
Envelope: purpose hostId hostKeyId deviceId deviceKeyId subjectId sessionId messageId
  sealedAtMs expiresAtMs enc ciphertext
UserError: code message
InvalidInput: code message
PairingRefused: code message
PairingClosed: code message
"""
DEVICE_DEPENDENT_FIELDS: Final = frozenset(
    {
        "Query.viewer",
        "Device.isCaller",
        "Device.hostKeyEnvelope",
        "Device.pushEndpoints",
        "HandoverOffer.envelope",
        "AgentRequest.envelope",
    }
)
"""Fields whose value depends on the very device, such as what is sealed for it.

Subscriptions that reach one are never shared between two devices.
"""

VIEW: Final = """
Query: node nodes server sessionCounts usage outsideSessions projects terminals
  templates viewer devices handoverOffers requests
Subscription: outsideSessionFeed terminalFeed deviceFeed handoverOfferFeed requestFeed
Node: id
PageInfo: hasNextPage hasPreviousPage startCursor endCursor
OutsideSessionConnection: edges nodes pageInfo
OutsideSessionEdge: cursor node
ProjectConnection: edges nodes pageInfo
ProjectEdge: cursor node
TerminalConnection: edges nodes pageInfo
TerminalEdge: cursor node
Host: id name
Project: id name path readOnly createdAt host templates
Template: id title description agent available
Terminal: id name directory title state cols rows exitStatus endReason startedAt
  endedAt lastOutputAt lastInputAt bellAt readOnly attachedClients sandbox host
  template project session
Sandbox: enabled kind signalsConfined projectWritable
OutsideSession: id agent name directory currentDirectory gitBranch state stateSince
  stateEvidence waitingFor startedAt lastActivityAt endedAt model permissionMode
  agentVersion usage conflict handedOffAt host project terminal resume continuedFrom
  continuations handoverOffer requests
StateEvidence: source observedAt
WaitingFor: kind label toolName since
TokenUsage: inputTokens outputTokens cacheCreationTokens cacheReadTokens
SessionConflict: since message
ResumeAvailability: available refusal
ResumeRefusal: code message
SessionCount: count state agent project
UsagePoint: start usage messages
Server: version schemaVersion host health urls contentMode hostKey hostKeyId
  oldestClient capabilities vapidPublicKey
Viewer: kind scopes content device
Device: id name platform key keyId scopes content state pairedAt lastSeenAt revokedAt
  isCaller hostKeyEnvelope pushEndpoints
PushEndpoint: id kind host createdAt
DeviceConnection: edges nodes pageInfo
DeviceEdge: cursor node
Envelope: purpose hostId hostKeyId deviceId deviceKeyId subjectId sessionId messageId
  sealedAtMs expiresAtMs enc ciphertext
HandoverOffer: id state stateSince delivery createdAt expiresAt session envelope
  terminal continuation blockedBy lastFailure
HandoverFailure: code message
HandoverOfferConnection: edges nodes pageInfo
HandoverOfferEdge: cursor node
HandoverOfferFeedMessage: cursor kind removedIds more at upserts
AnswerHandoverPayload: offer
DismissHandoverPayload: offer
TakeOverSessionPayload: terminal handedOff
SendPromptPayload: terminal
EnvelopeInvalid: code message
EnvelopeReplayed: code message
OfferNotFound: code message
OfferNotOpen: code message offerState currentOffer
AnswerStartsACommand: code message
AgentNotIdle: code message
PromptNotSent: code message
DeviceFeedMessage: cursor kind removedIds more at upserts
Mutation: refreshDeviceToken pairDevice answerHandover answerRequest
  registerPushEndpoint removePushEndpoint
RegisterPushEndpointPayload: endpoint
RemovePushEndpointPayload: endpoint
PushEndpointRefused: code message
PushEndpointNotFound: code message
PushEndpointLimitReached: code message
RefreshDeviceTokenPayload: envelope
PairDevicePayload: state envelope retryAfterMs
Health: status ready notes counters
HealthCounter: name value
FeedMessage: cursor kind removedIds more at
OutsideSessionFeedMessage: cursor kind removedIds more at upserts
TerminalFeedMessage: cursor kind removedIds more at upserts
RegisterProjectPayload: project
UpdateProjectPayload: project
RemoveProjectPayload: project
ResumeOutsideSessionPayload: terminal
StartTerminalPayload: terminal
RenameTerminalPayload: terminal
ResizeTerminalPayload: terminal
CloseTerminalPayload: terminal
InstallHooksPayload: hooks
UninstallHooksPayload: hooks
SetAdoptionPolicyPayload: policy
HooksUnreadable: code message
HooksNotWritten: code message
UserError: code message
InvalidInput: code message
AgentRequest: id kind state stateSince createdAt expiresAt expiresAtMs hasTimedOut
  settledBy verdict sessionId session terminal envelope
AgentRequestConnection: edges nodes pageInfo
AgentRequestEdge: cursor node
AgentRequestFeedMessage: cursor kind removedIds more at upserts
AnswerRequestPayload: request
RequestNotFound: code message
RequestSettled: code message
RequestKeyboardOnly: code message
RequestTimedOut: code message
RequestChanged: code message
SuggestionNotAllowed: code message
DeviceNotFound: code message
DeviceLimitReached: code message
DeviceKeyRequired: code message
PairingRefused: code message
PairingClosed: code message
PairingCodeWrong: code message
PairingLimitReached: code message
OutsideSessionNotFound: code message
OutsideSessionResumed: code message openTerminal
OutsideResumeBusy: code message
OutsideSessionLive: code message
OutsideResumeUnavailable: code message
ConversationTaken: code message
IdempotencyKeyReused: code message
TemplateNotFound: code message
TemplateNotAllowed: code message
SandboxUnavailable: code message
AgentNotFound: code message
TerminalLimitReached: code message
TerminalNotFound: code message
TerminalNotRunning: code message
HostUnavailable: code message
StartFailed: code message
StorageUnavailable: code message
ProjectNotFound: code message
ProjectExists: code message
ProjectTooWide: code message
ProjectFolderMissing: code message
ProjectChanged: code message
ProjectLimitReached: code message
"""

# A ticket shows the screen, whatever else its mode admits to: it needs READ too.
READ: Final = """
Subscription: transcriptFeed
Terminal: screen styledScreen search
StyledLine: runs
StyledRun: text foreground background bold italic underline inverse
ScreenMatches: matches more
ScreenMatch: linesFromEnd column line
OutsideSession: lastMessage transcript
MessagePreview: role text at
AgentRequest: content
RequestContent: toolName inputJson digest suggestions questions plan
RequestSuggestion: json destination needsAdmin isForbidden
RequestQuestion: text header options multiSelect
RequestOption: label description
TranscriptConnection: edges nodes pageInfo branchId branches totalCount skippedLines
TranscriptEntryEdge: cursor node
TranscriptBranch: id isActive entries lastAt preview
TranscriptText: text truncated
ToolCall: id name inputJson
ToolResult: callId isError denied
TranscriptEntry: id order at body
PromptEntry: id order at body
MessageEntry: id order at body model
ThinkingEntry: id order at body model
ToolCallEntry: id order at body model toolCall
ToolResultEntry: id order at body toolResult
CompactionEntry: id order at body
InterruptionEntry: id order at body
CommandEntry: id order at body
NoticeEntry: id order at body
OpaqueEntry: id order at body recordType
TranscriptFeedMessage: cursor kind removedIds more at upserts
Mutation: issueTerminalTicket
ResumeOutsideSessionPayload: ticket
StartTerminalPayload: ticket
TakeOverSessionPayload: ticket
IssueTerminalTicketPayload: ticket
TerminalTicket: secret mode expiresAt socketPath
"""

# Answering looks at the caller's key before its scope, which it needs all the same.
ANSWER: Final = """
Mutation: dismissHandover
"""

TERMINAL: Final = """
Mutation: resumeOutsideSession startTerminal renameTerminal resizeTerminal closeTerminal
  takeOverSession sendPrompt
"""

ADMIN: Final = """
Query: auditLog hooks adoptionPolicy
Subscription: pairingFeed
Mutation: registerProject updateProject removeProject createPairing confirmPairing
  cancelPairing renameDevice revokeDevice installHooks uninstallHooks
  setAdoptionPolicy
CreatePairingPayload: pairing link expiresInSeconds
ConfirmPairingPayload: device
CancelPairingPayload: pairing
RenameDevicePayload: device
RevokeDevicePayload: device wasRevoked
Pairing: id state end name platform keyId scopes content expiresAt deviceId
PairingFeedMessage: cursor kind removedIds more at upserts
HookInstallation: settingsFile state note
AdoptionPolicy: enabled excluded
AuditEntryConnection: edges nodes pageInfo
AuditEntryEdge: cursor node
AuditEntry: id seq at actor action targetId outcome address code detail hash
"""


def _rows(table: str, scope: Scope) -> Iterator[tuple[str, Scope]]:
    type_name = ""
    for word in table.split():
        if word.endswith(":"):
            type_name = word[:-1]
        else:
            yield f"{type_name}.{word}", scope


def _read_tables() -> Mapping[str, Scope]:
    tables = (
        (VIEW, Scope.VIEW),
        (READ, Scope.READ),
        (ANSWER, Scope.ANSWER),
        (TERMINAL, Scope.TERMINAL),
        (ADMIN, Scope.ADMIN),
    )
    return dict(row for table, scope in tables for row in _rows(table, scope))


ANONYMOUS_FIELDS: Final = frozenset(name for name, _ in _rows(_ANONYMOUS, Scope.VIEW))
"""All that a caller without a token may select, besides `__typename`."""

SCOPES: Final = _read_tables()
