"""Projects and hosts, as GraphQL shows them."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import strawberry

from resolvers import node as nodes
from resolvers.content import labelled, plain
from resolvers.context import Context, Info
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
from sidestage.devices.model import ContentMode
from sidestage.ids import ProjectId
from sidestage.projects import model
from sidestage.terminals.desk import Template as TemplateValue
from sidestage.text import clean_path

if TYPE_CHECKING:
    from resolvers.terminals import Template

LazyTemplate = Annotated["Template", strawberry.lazy("resolvers.terminals")]


@strawberry.type(description="A machine that Sidestage runs on.")
class Host(Node):
    """A machine that Sidestage runs on."""

    name: str = labelled("The machine's name.")

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a host."""
        return isinstance(value, nodes.Host)


def _path(root: strawberry.Parent[model.Project]) -> str:
    return clean_path(root.path)


def _host(info: Info) -> nodes.Host:
    return host_of(info.context)


def _templates(
    info: Info, root: strawberry.Parent[model.Project]
) -> list[TemplateValue] | None:
    if root.templates is None:
        return None
    found = (find_template(info.context, id_) for id_ in root.templates)
    return [template for template in found if template]


@strawberry.type(description="A folder in which terminals may be started.")
class Project(Node):
    """A folder in which terminals may be started."""

    name: str = labelled(
        "What its owner calls it. A placeholder when content is sealed.",
    )
    path = labelled(
        "The folder's real path on its host.",
        resolver=_path,
        graphql_type=str | None,
    )
    read_only: bool = plain("Whether programs in its terminals cannot change it.")
    created_at: datetime = plain("When it was registered.")
    host = strawberry.field(
        resolver=_host,
        graphql_type=Host,
        description="The machine the folder is on.",
    )
    templates = strawberry.field(
        resolver=_templates,
        graphql_type=list[LazyTemplate] | None,
        description="The templates that may run here; null allows every one.",
    )

    @classmethod
    def is_type_of(cls, value: object, _info: object) -> bool:
        """Tell whether *value* is a project."""
        return isinstance(value, model.Project)


ORDER: Final[Order[model.Project]] = Order(
    "projects", lambda project: (project.name.casefold(), project.id)
)


SEALED_ORDER: Final[Order[model.Project]] = Order(
    "sealed projects", lambda project: ("", project.id)
)


def list_projects(
    info: Info,
    first: First = strawberry.UNSET,
    after: After = strawberry.UNSET,
    last: Last = strawberry.UNSET,
    before: Before = strawberry.UNSET,
) -> Page[model.Project]:
    """Return a page of the registered projects, by name."""
    request = PageRequest.of(first, after, last, before)
    # By name they would tell it, one page at a time, and their cursors hold it.
    is_sealed = info.context.principal.content is ContentMode.SEALED
    order = SEALED_ORDER if is_sealed else ORDER
    return page_of(info.context.parts.projects.feed.values(), order, request)


def find_project(context: Context, id_: ProjectId | None) -> model.Project | None:
    """Return the project with that id, or None."""
    return context.parts.projects.feed.get(id_) if id_ else None


ProjectConnection = Connection[Project]
