"""Mutations of projects."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.inputs import (
    PATH_LIMIT_CHARACTERS,
    checked_id,
    checked_name,
    checked_text,
)
from resolvers.projects import Project
from sidestage.errors import InvalidInput
from sidestage.ids import ProjectId, TemplateId
from sidestage.projects import model

TEMPLATES_LIMIT = 50
"""More templates than a server has."""


@strawberry.input(description="A folder to register as a project.")
class RegisterProjectInput:
    """A folder to register as a project."""

    path: str = strawberry.field(
        description="The folder's absolute path on the host; links are resolved."
    )
    name: str | None = strawberry.field(
        default=None, description="What to call it; the folder's name if left out."
    )
    read_only: bool = strawberry.field(
        default=False, description="Whether programs in its terminals cannot change it."
    )
    templates: list[strawberry.ID] | None = strawberry.field(
        default=None, description="The templates that may run there; all if left out."
    )


@strawberry.input(description="What to change of a project; the rest stays.")
class UpdateProjectInput:
    """What to change of a project."""

    project_id: strawberry.ID = strawberry.field(description="The project.")
    name: str | None = strawberry.field(default=None, description="Its new name.")
    read_only: bool | None = strawberry.field(
        default=None, description="Whether programs in its terminals cannot change it."
    )
    templates: list[strawberry.ID] | None = strawberry.field(
        default=None, description="The templates that may run there."
    )
    allow_all_templates: bool = strawberry.field(
        default=False, description="Allow every template; not with `templates`."
    )


@strawberry.input(description="A project to forget.")
class RemoveProjectInput:
    """A project to forget."""

    project_id: strawberry.ID = strawberry.field(description="The project.")


@strawberry.type(description="The project was registered.")
class RegisterProjectPayload:
    """The project was registered."""

    project: model.Project = plain("The new project.", graphql_type=Project)


@strawberry.type(description="The project was changed.")
class UpdateProjectPayload:
    """The project was changed."""

    project: model.Project = plain("The project as it is now.", graphql_type=Project)


@strawberry.type(description="The project was forgotten; its folder is untouched.")
class RemoveProjectPayload:
    """The project was forgotten; its folder is untouched."""

    project: model.Project = plain("The project as it was.", graphql_type=Project)


RegisterProjectResult: TypeAlias = Annotated[
    RegisterProjectPayload
    | errors.InvalidInput
    | errors.ProjectFolderMissing
    | errors.ProjectTooWide
    | errors.ProjectExists
    | errors.ProjectLimitReached
    | errors.TemplateNotFound
    | errors.StorageUnavailable,
    strawberry.union(
        name="RegisterProjectResult",
        description="The payload, or why the folder was not registered.",
    ),
]
UpdateProjectResult: TypeAlias = Annotated[
    UpdateProjectPayload
    | errors.InvalidInput
    | errors.ProjectNotFound
    | errors.TemplateNotFound
    | errors.StorageUnavailable,
    strawberry.union(
        name="UpdateProjectResult",
        description="The payload, or why the project was not changed.",
    ),
]
RemoveProjectResult: TypeAlias = Annotated[
    RemoveProjectPayload
    | errors.InvalidInput
    | errors.ProjectNotFound
    | errors.StorageUnavailable,
    strawberry.union(
        name="RemoveProjectResult",
        description="The payload, or why the project was not forgotten.",
    ),
]


def _templates(ids: list[strawberry.ID] | None) -> tuple[TemplateId, ...] | None:
    if ids is None:
        return None
    if len(ids) > TEMPLATES_LIMIT:
        raise InvalidInput(f"templates must not be more than {TEMPLATES_LIMIT}")
    return tuple(TemplateId(checked_id("templates", id_)) for id_ in ids)


RegisterInput = Annotated[
    RegisterProjectInput, strawberry.argument(description="The folder.")
]
UpdateInput = Annotated[
    UpdateProjectInput, strawberry.argument(description="The changes.")
]
RemoveInput = Annotated[
    RemoveProjectInput, strawberry.argument(description="The project.")
]


async def register_project(info: Info, input: RegisterInput) -> RegisterProjectPayload:  # noqa: A002 -- the schema's name
    """Register a folder as a project."""
    project = await info.context.parts.projects.register(
        checked_text("path", input.path, PATH_LIMIT_CHARACTERS),
        name=checked_name(input.name),
        read_only=input.read_only,
        templates=_templates(input.templates),
        actor=info.context.principal,
    )
    return RegisterProjectPayload(project=project)


async def update_project(info: Info, input: UpdateInput) -> UpdateProjectPayload:  # noqa: A002 -- the schema's name
    """Change a project."""
    if input.allow_all_templates and input.templates is not None:
        raise InvalidInput("Give templates or allowAllTemplates, not both.")
    project = await info.context.parts.projects.update(
        ProjectId(checked_id("projectId", input.project_id)),
        name=checked_name(input.name),
        read_only=input.read_only,
        templates=_templates(input.templates),
        allow_all_templates=input.allow_all_templates,
        actor=info.context.principal,
    )
    return UpdateProjectPayload(project=project)


async def remove_project(info: Info, input: RemoveInput) -> RemoveProjectPayload:  # noqa: A002 -- the schema's name
    """Forget a project."""
    project = await info.context.parts.projects.remove(
        ProjectId(checked_id("projectId", input.project_id)),
        actor=info.context.principal,
    )
    return RemoveProjectPayload(project=project)
