"""Sidestage's hooks in agents' settings, as GraphQL shows and changes them."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.inputs import PATH_LIMIT_CHARACTERS, checked_text
from sidestage.sessions import hook_setup
from sidestage.sessions.hook_setup import HookState
from sidestage.text import clean_path


def _settings_file(root: strawberry.Parent[hook_setup.HookStatus]) -> str:
    return clean_path(root.settings_file)


@strawberry.type(description="Sidestage's hooks in one settings file of an agent.")
class HookInstallation:
    """Sidestage's hooks in one settings file of an agent."""

    settings_file = plain(
        "The file's path on the host.", resolver=_settings_file, graphql_type=str
    )
    state: HookState = plain("Whether they are installed.")
    note: str | None = plain("What is wrong, as a sentence for people.")


Status = list[hook_setup.HookStatus]
_DESCRIPTION = "Every settings file, as it is now."


@strawberry.input(description="Where to install the hooks.")
class InstallHooksInput:
    """Where to install the hooks."""

    settings_file: str | None = strawberry.field(
        default=None,
        description="One settings file of `hooks`, by its path; all if left out.",
    )


@strawberry.input(description="Where to take the hooks out.")
class UninstallHooksInput:
    """Where to take the hooks out."""

    settings_file: str | None = strawberry.field(
        default=None,
        description="One settings file of `hooks`, by its path; all if left out.",
    )


@strawberry.type(description="The hooks are installed.")
class InstallHooksPayload:
    """The hooks are installed."""

    hooks: Status = plain(_DESCRIPTION, graphql_type=list[HookInstallation])


@strawberry.type(description="The hooks are not installed any more.")
class UninstallHooksPayload:
    """The hooks are not installed any more."""

    hooks: Status = plain(_DESCRIPTION, graphql_type=list[HookInstallation])


InstallHooksResult: TypeAlias = Annotated[
    InstallHooksPayload
    | errors.InvalidInput
    | errors.HooksUnreadable
    | errors.HooksNotWritten,
    strawberry.union(
        name="InstallHooksResult",
        description="The payload, or why the hooks were not installed.",
    ),
]
UninstallHooksResult: TypeAlias = Annotated[
    UninstallHooksPayload
    | errors.InvalidInput
    | errors.HooksUnreadable
    | errors.HooksNotWritten,
    strawberry.union(
        name="UninstallHooksResult",
        description="The payload, or why the hooks were not taken out.",
    ),
]


InstallInput = Annotated[
    InstallHooksInput, strawberry.argument(description="Where to install them.")
]
UninstallInput = Annotated[
    UninstallHooksInput, strawberry.argument(description="Where to take them out.")
]


def _only(path: str | None) -> str | None:
    if path is None:
        return None
    return checked_text("settingsFile", path, PATH_LIMIT_CHARACTERS)


async def list_hooks(info: Info) -> Status:
    """Return how the hooks stand in each settings file."""
    return list(await info.context.parts.hooks.status())


async def install_hooks(info: Info, input: InstallInput) -> InstallHooksPayload:  # noqa: A002 -- the schema's name
    """Install the hooks."""
    setup = info.context.parts.hooks
    done = await setup.install(
        only=_only(input.settings_file), actor=info.context.principal
    )
    return InstallHooksPayload(hooks=list(done))


async def uninstall_hooks(info: Info, input: UninstallInput) -> UninstallHooksPayload:  # noqa: A002 -- the schema's name
    """Take the hooks out."""
    setup = info.context.parts.hooks
    done = await setup.uninstall(
        only=_only(input.settings_file), actor=info.context.principal
    )
    return UninstallHooksPayload(hooks=list(done))
