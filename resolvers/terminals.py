"""Terminals and templates, as GraphQL shows them."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import strawberry

from resolvers import node as nodes
from resolvers.content import labelled, plain, textual
from resolvers.context import Info
from resolvers.node import Node, find_template, host_of
from resolvers.paging import (
    After,
    Before,
    Connection,
    First,
    Last,
    Order,
    Page,
    PageRequest,
    page_of,
)
from resolvers.projects import Host, Project, find_project
from resolvers.scalars import write_datetime
from resolvers.screens import (
    ScreenMatches,
    StyledLine,
    read_screen,
    read_styled_screen,
    search_screen,
)
from sidestage.projects import model as projects
from sidestage.sessions.model import AgentKind, Session
from sidestage.terminals import desk, model
from sidestage.text import clean_path

if TYPE_CHECKING:
    from resolvers.sessions import OutsideSession

LazySession = Annotated["OutsideSession", strawberry.lazy("resolvers.sessions")]


@strawberry.type(description="A named command line that a terminal may run.")
class Template(Node):
    """A named command line that a terminal may run."""

    title: str = plain("What to call it on a button.")
    description: str = plain("What it runs, in one sentence.")
    agent: AgentKind | None = plain("The agent it starts; null for a plain program.")
    available: bool = plain("Whether its program is installed on the host.")

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a template."""
        return isinstance(value, desk.Template)


@strawberry.type(description="What really confines a terminal's programs.")
class Sandbox:
    """What really confines a terminal's programs."""

    enabled: bool = plain("Whether there is a sandbox at all.")
    kind: str = plain("Its kind: `bubblewrap` or `none`. More may come.")
    signals_confined: bool = plain(
        "Whether programs inside cannot signal processes outside."
    )
    project_writable: bool = plain("Whether programs inside may change the project.")


def _directory(root: strawberry.Parent[model.Terminal]) -> str:
    return clean_path(root.directory)


def _host(info: Info) -> nodes.Host:
    return host_of(info.context)


def _template(
    info: Info, root: strawberry.Parent[model.Terminal]
) -> desk.Template | None:
    return find_template(info.context, root.template)


def _project(
    info: Info, root: strawberry.Parent[model.Terminal]
) -> projects.Project | None:
    return find_project(info.context, root.project_id)


def _session(info: Info, root: strawberry.Parent[model.Terminal]) -> Session | None:
    if root.session_id is None:
        return None
    return info.context.parts.sessions.find(root.session_id)


@strawberry.type(description="A terminal that Sidestage runs, or ran.")
class Terminal(Node):
    """A terminal that Sidestage runs, or ran."""

    name: str = labelled("Its name. A placeholder when content is sealed.")
    directory = labelled(
        "The folder in which its program was started.",
        resolver=_directory,
        graphql_type=str | None,
    )
    title: str | None = labelled("The title its program set, if it set one.")
    state: model.TerminalState = plain("What became of it.")
    cols: int = plain("Its width in cells.")
    rows: int = plain("Its height in cells.")
    exit_status: int | None = plain(
        "How its program ended: the exit code, or 128 and the signal's number."
    )
    end_reason: str | None = plain(
        "Why Sidestage itself ended it, as a code such as `CONVERSATION_TAKEN`."
    )
    started_at: datetime = plain("When it was started.")
    ended_at: datetime | None = plain("When its program ended.")
    last_output_at: datetime | None = plain("When its program last wrote something.")
    last_input_at: datetime | None = plain("When someone last typed.")
    bell_at: datetime | None = plain("When its program last rang the bell.")
    read_only: bool = plain("Whether its project cannot be changed from inside.")
    attached_clients: int = plain("How many clients are attached now.")
    sandbox: Sandbox = plain("What confines its programs.")
    host = strawberry.field(
        resolver=_host, graphql_type=Host, description="The machine it runs on."
    )
    template = strawberry.field(
        resolver=_template,
        graphql_type=Template | None,
        description="What was started in it; null once the template is gone.",
    )
    project = strawberry.field(
        resolver=_project,
        graphql_type=Project | None,
        description="Its project; null once that is removed.",
    )
    session = strawberry.field(
        resolver=_session,
        graphql_type=LazySession | None,
        description="The session that runs in it, if it runs one.",
    )
    screen = textual(
        "The end of what its screen shows, as plain text. Null when no screen is left "
        "of it. Not within a feed: there "
        "the companion WebSocket tells what changes.",
        resolver=read_screen,
        graphql_type=str | None,
    )
    styled_screen = plain(
        "The end of what its screen shows, row by row, with colours and styles. Null "
        "when no screen is left of it; the oldest rows are left out when there is too "
        "much. Not within a feed.",
        resolver=read_styled_screen,
        graphql_type=list[StyledLine] | None,
    )
    search = plain(
        "Where a text stands on its screen and in the up to 1000 lines above. Null "
        "when no screen is left of it. Not within a feed.",
        resolver=search_screen,
        graphql_type=ScreenMatches | None,
    )

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a terminal."""
        return isinstance(value, model.Terminal)


ORDER: Final[Order[model.Terminal]] = Order(
    "terminals",
    lambda terminal: (write_datetime(terminal.started_at), terminal.id),
    descending=True,
)


def list_terminals(
    info: Info,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[model.Terminal]:
    """Return a page of the terminals, latest start first."""
    request = PageRequest.of(first, after, last, before)
    return page_of(info.context.parts.terminals.feed.values(), ORDER, request)


def list_templates(info: Info) -> list[desk.Template]:
    """Return every template of this server."""
    return list(info.context.parts.terminals.list_templates())


TerminalConnection = Connection[Terminal]
