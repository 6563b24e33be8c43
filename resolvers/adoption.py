"""The adoption policy, as GraphQL shows and changes it."""

from typing import Annotated, TypeAlias

import strawberry

from resolvers import user_errors as errors
from resolvers.content import plain
from resolvers.context import Info
from resolvers.inputs import PATH_LIMIT_CHARACTERS, checked_text
from sidestage.errors import InvalidInput
from sidestage.projects import adoption


@strawberry.type(description="For which sessions hooks may make requests and offers.")
class AdoptionPolicy:
    """For which sessions hooks may make requests and offers."""

    enabled: bool = plain("Whether any session may.")
    excluded: list[str] = plain(
        "Folders whose sessions may not, each with all that lies in it. They are "
        "listed like all others, and nothing more."
    )


@strawberry.input(description="What to change of the policy; the rest stays.")
class SetAdoptionPolicyInput:
    """What to change of the policy."""

    enabled: bool | None = strawberry.field(
        default=None, description="Whether any session may make requests and offers."
    )
    excluded: list[str] | None = strawberry.field(
        default=None,
        description="Every folder to leave alone, by its absolute path; links are "
        "resolved.",
    )


@strawberry.type(description="The policy was set.")
class SetAdoptionPolicyPayload:
    """The policy was set."""

    policy: adoption.AdoptionPolicy = plain(
        "The policy as it is now.", graphql_type=AdoptionPolicy
    )


SetAdoptionPolicyResult: TypeAlias = Annotated[
    SetAdoptionPolicyPayload | errors.InvalidInput,
    strawberry.union(
        name="SetAdoptionPolicyResult",
        description="The payload, or why the policy was not set.",
    ),
]
PolicyInput = Annotated[
    SetAdoptionPolicyInput, strawberry.argument(description="The changes.")
]


def read_policy(info: Info) -> adoption.AdoptionPolicy:
    """Return the policy in force."""
    return info.context.parts.adoption.policy


async def set_policy(info: Info, input: PolicyInput) -> SetAdoptionPolicyPayload:  # noqa: A002 -- the schema's name
    """Change the policy."""
    keeper = info.context.parts.adoption
    before = keeper.policy
    policy = adoption.AdoptionPolicy(
        enabled=before.enabled if input.enabled is None else input.enabled,
        excluded=before.excluded
        if input.excluded is None
        else _folders(input.excluded),
    )
    done = await keeper.set_policy(policy, actor=info.context.principal)
    return SetAdoptionPolicyPayload(policy=done)


def _folders(paths: list[str]) -> tuple[str, ...]:
    if len(paths) > adoption.EXCLUDED_LIMIT:
        raise InvalidInput(f"excluded must not be more than {adoption.EXCLUDED_LIMIT}")
    return tuple(
        checked_text("excluded", path, PATH_LIMIT_CHARACTERS) for path in paths
    )
