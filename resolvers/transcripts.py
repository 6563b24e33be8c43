"""A conversation's entries, as GraphQL shows them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import strawberry

from resolvers.content import plain, textual
from resolvers.context import Info, given
from resolvers.paging import (
    After,
    Before,
    Edge,
    First,
    Last,
    PageInfo,
    PageRequest,
    Row,
)
from sidestage.sessions import transcript as model
from sidestage.sessions.model import Session
from sidestage.sessions.transcript import EntryKind


@strawberry.type(description="Text of an entry.")
class TranscriptText:
    """Text of an entry."""

    text: str | None = textual("The text, cleaned of control characters.")
    truncated: bool = plain(
        "Whether it was cut at 65,536 characters; the rest is in the agent's file."
    )


def _itself(
    root: strawberry.Parent[model.TranscriptEntry],
) -> model.TranscriptEntry:
    return root


@strawberry.interface(
    description=(
        "An entry of a conversation. More kinds may come: select these fields on the "
        "interface, and show an entry you do not know by its `body`."
    )
)
class TranscriptEntry:
    """An entry of a conversation."""

    id: strawberry.ID = textual("The entry's id, stable for the life of its record.")
    order: str = textual(
        "Sorts the entries of one branch, and is the entry's cursor in `transcript`."
    )
    at: datetime | None = textual("When it was recorded.")
    body = textual(
        "Its text; empty where there is none.",
        resolver=_itself,
        graphql_type=TranscriptText,
    )

    @classmethod
    def resolve_type(
        cls, value: model.TranscriptEntry, _info: object, _type: object
    ) -> str:
        """Return the name of the type that shows an entry of that kind."""
        return TYPE_NAMES[value.kind]

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is an entry that this type shows."""
        return (
            isinstance(value, model.TranscriptEntry)
            and TYPE_NAMES[value.kind] == cls.__name__
        )


@strawberry.type(description="A tool the agent asked for.")
class ToolCall:
    """A tool the agent asked for."""

    id: strawberry.ID = textual("Names the call; its result carries the same id.")
    name: str = textual("The tool's name.")
    input_json: str = textual("The tool's input as JSON text.")


@strawberry.type(description="What became of a tool call.")
class ToolResult:
    """What became of a tool call."""

    call_id: strawberry.ID = textual("The id of the call.")
    is_error: bool = textual("Whether the tool failed.")
    denied: bool = textual("Whether a person, a rule or an interrupt refused it.")


@strawberry.type(description="What a person or a program asked the agent.")
class PromptEntry(TranscriptEntry):
    """What a person or a program asked the agent."""


@strawberry.type(description="What the agent said.")
class MessageEntry(TranscriptEntry):
    """What the agent said."""

    model: str | None = textual("The model that said it.")


@strawberry.type(description="What the agent thought, where it is recorded.")
class ThinkingEntry(TranscriptEntry):
    """What the agent thought."""

    model: str | None = textual("The model that thought it.")


@strawberry.type(description="A tool the agent wants to use.")
class ToolCallEntry(TranscriptEntry):
    """A tool the agent wants to use."""

    model: str | None = textual("The model that asked for it.")
    tool_call: ToolCall | None = textual("The tool and its input.")


@strawberry.type(description="What a tool gave back; the output is the body.")
class ToolResultEntry(TranscriptEntry):
    """What a tool gave back."""

    tool_result: ToolResult | None = textual("How the call ended.")


@strawberry.type(
    description="The conversation was compacted here; the body is the summary."
)
class CompactionEntry(TranscriptEntry):
    """The conversation was compacted here."""


@strawberry.type(description="The person interrupted the agent here.")
class InterruptionEntry(TranscriptEntry):
    """The person interrupted the agent here."""


@strawberry.type(description="A slash or shell command of the person, or its output.")
class CommandEntry(TranscriptEntry):
    """A slash or shell command of the person, or its output."""


@strawberry.type(description="Something the agent program itself said.")
class NoticeEntry(TranscriptEntry):
    """Something the agent program itself said."""


@strawberry.type(
    description="A record this version does not know, or a line it had to skip."
)
class OpaqueEntry(TranscriptEntry):
    """A record this version does not know, or a line it had to skip."""

    record_type: str | None = textual(
        "The agent program's own name of the record's type."
    )


TYPE_NAMES: Final[Mapping[EntryKind, str]] = {
    EntryKind.PROMPT: "PromptEntry",
    EntryKind.MESSAGE: "MessageEntry",
    EntryKind.THINKING: "ThinkingEntry",
    EntryKind.TOOL_CALL: "ToolCallEntry",
    EntryKind.TOOL_RESULT: "ToolResultEntry",
    EntryKind.COMPACTION: "CompactionEntry",
    EntryKind.INTERRUPTION: "InterruptionEntry",
    EntryKind.COMMAND: "CommandEntry",
    EntryKind.NOTICE: "NoticeEntry",
    EntryKind.OPAQUE: "OpaqueEntry",
}
ENTRY_TYPES: Final = (
    PromptEntry,
    MessageEntry,
    ThinkingEntry,
    ToolCallEntry,
    ToolResultEntry,
    CompactionEntry,
    InterruptionEntry,
    CommandEntry,
    NoticeEntry,
    OpaqueEntry,
)


@strawberry.type(
    description="One line of the conversation's tree, named by its last entry."
)
class TranscriptBranch:
    """One line of the conversation's tree."""

    id: strawberry.ID = textual("Give it to `transcript(branch:)`.")
    is_active: bool = textual("Whether the conversation goes on here.")
    entries: int = textual("How many entries it has.")
    last_at: datetime | None = textual("When its last entry was recorded.")
    preview: str | None = textual("The beginning of its last words.")


@strawberry.type(description="A page of a conversation, oldest entry first.")
class TranscriptConnection:
    """A page of a conversation."""

    edges: list[Edge[TranscriptEntry]] = textual("The entries with their cursors.")
    nodes: list[TranscriptEntry] = textual("The entries alone.")
    page_info: PageInfo = textual("Where the page lies in the branch.")
    branch_id: strawberry.ID | None = textual("The branch these entries are of.")
    branches: list[TranscriptBranch] = textual("Every branch of the conversation.")
    total_count: int = textual("How many entries the branch has.")
    skipped_lines: int = textual("Lines of the file that could not be read.")


class TranscriptPage:
    """A transcript's page with what the schema's connection shows of it."""

    def __init__(self, page: model.TranscriptPage) -> None:
        self.nodes = page.entries
        self.branch_id = page.branch_id
        self.branches = page.branches
        self.total_count = page.total
        self.skipped_lines = page.skipped_lines
        self.has_next_page = page.has_next
        self.has_previous_page = page.has_previous
        self.page_info = self

    @property
    def edges(self) -> list[Row[model.TranscriptEntry]]:
        """The entries with their cursors: an entry's own `order`."""
        return [Row(entry.order, entry) for entry in self.nodes]

    @property
    def start_cursor(self) -> str | None:
        """The cursor of the first entry."""
        return self.nodes[0].order if self.nodes else None

    @property
    def end_cursor(self) -> str | None:
        """The cursor of the last entry."""
        return self.nodes[-1].order if self.nodes else None


Branch = Annotated[
    strawberry.ID | None,
    strawberry.argument(description="A branch's id; the active one if it is left out."),
]


async def read_transcript(
    info: Info,
    root: strawberry.Parent[Session],
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
    branch: Branch = strawberry.UNSET,
) -> TranscriptPage:
    """Return a page of the session's conversation."""
    request = PageRequest.of(first, after, last, before)
    page = await info.context.parts.transcripts.page(
        root.id,
        first=None if request.backwards else request.size,
        after=request.after,
        last=request.size if request.backwards else None,
        before=request.before,
        branch=given(branch),
    )
    return TranscriptPage(page)
