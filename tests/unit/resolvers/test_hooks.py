"""Hooks and the adoption policy, by the API."""

import pytest

from sidestage.projects.adoption import EXCLUDED_LIMIT
from sidestage.sessions.hook_setup import HookState
from tests.fakes.hook_setup import FILE, FakeAdoption, FakeHookSetup
from tests.fakes.parts import World, make_world
from tests.fakes.tokens import OPERATOR

STATUS = "{ hooks { settingsFile state note } }"
INSTALL = """mutation { installHooks(input: {}) { __typename
  ... on InstallHooksPayload { hooks { state } }
  ... on UserError { code message } } }"""
UNINSTALL = """mutation { uninstallHooks(input: {}) { __typename
  ... on UninstallHooksPayload { hooks { state } }
  ... on UserError { code message } } }"""
POLICY = "{ adoptionPolicy { enabled excluded } }"
SET = """mutation Set($input: SetAdoptionPolicyInput!) {
  setAdoptionPolicy(input: $input) { __typename
  ... on SetAdoptionPolicyPayload { policy { enabled excluded } }
  ... on UserError { code message } } }"""


@pytest.fixture
def world() -> World:
    return make_world()


def setup_of(world: World) -> FakeHookSetup:
    setup = world.parts.hooks
    assert isinstance(setup, FakeHookSetup)
    return setup


async def test_hooks_are_installed_shown_and_taken_out(world: World) -> None:
    async with world.client() as client:
        before = await client.data(STATUS)
        row = {"settingsFile": FILE, "state": "ABSENT", "note": None}
        assert before == {"hooks": [row]}
        done = await client.data(INSTALL)
        assert done["installHooks"]["hooks"] == [{"state": "INSTALLED"}]
        done = await client.data(UNINSTALL)
        assert done["uninstallHooks"]["hooks"] == [{"state": "ABSENT"}]


@pytest.mark.parametrize("mutation", [INSTALL, UNINSTALL])
async def test_a_file_that_cannot_be_parsed_is_a_typed_error(
    world: World, mutation: str
) -> None:
    setup = setup_of(world)
    setup.state, setup.note = HookState.UNREADABLE, f"{FILE}, line 3: no"
    async with world.client() as client:
        [answer] = (await client.data(mutation)).values()
        assert answer == {
            "__typename": "HooksUnreadable",
            "code": "HOOKS_UNREADABLE",
            "message": f"{FILE}, line 3: no",
        }


async def test_one_file_can_be_named(world: World) -> None:
    async with world.client() as client:
        document = INSTALL.replace("{}", f'{{settingsFile: "{FILE}"}}')
        await client.data(document)
        assert setup_of(world).only == FILE
        data = await client.data(INSTALL.replace("{}", '{settingsFile: ""}'))
        assert data["installHooks"]["code"] == "INVALID_REQUEST"


async def test_the_policy_is_changed_field_by_field(world: World) -> None:
    async with world.client() as client:
        assert (await client.data(POLICY))["adoptionPolicy"] == {
            "enabled": True,
            "excluded": [],
        }
        await client.data(SET, {"input": {"excluded": ["/a"]}})
        done = await client.data(SET, {"input": {"enabled": False}})
        assert done["setAdoptionPolicy"]["policy"] == {
            "enabled": False,
            "excluded": ["/a"],
        }
        assert isinstance(world.parts.adoption, FakeAdoption)
        assert world.parts.adoption.policy.excluded == ("/a",)


@pytest.mark.parametrize("excluded", [[""], ["/a\n"], ["/a"] * (EXCLUDED_LIMIT + 1)])
async def test_folders_that_are_no_good_are_a_typed_error(
    world: World, excluded: list[str]
) -> None:
    async with world.client() as client:
        data = await client.data(SET, {"input": {"excluded": excluded}})
        assert data["setAdoptionPolicy"]["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize("document", [STATUS, INSTALL, UNINSTALL, POLICY])
async def test_they_are_the_admins_alone(world: World, document: str) -> None:
    async with world.client(OPERATOR) as client:
        assert await client.code(document) == "PERMISSION_DENIED"
