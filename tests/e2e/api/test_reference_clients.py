"""The API as the reference implementations of its protocols see it (api.md, line 6)."""

import asyncio
import json

import pytest

from tests.e2e.api.serving import run_node, served
from tests.fakes.tokens import ADMIN
from tests.fakes.values import a_session, session_id

FEED = "subscription { outsideSessionFeed { kind upserts { id name } } }"


@pytest.mark.parametrize("allows_get", [True, False])
async def test_the_audit_of_graphql_over_http_finds_nothing(allows_get: bool) -> None:
    """61 of 61; without GET, which is the default, its GET audits are notices."""
    async with served(allows_get=allows_get) as server:
        node = await run_node("audit.mjs", f"{server.base}/graphql", ADMIN)
        out, err = await node.communicate()
    assert node.returncode == 0, err.decode()
    outcomes = json.loads(out)
    assert len(outcomes) == 61
    odd = [outcome for outcome in outcomes if outcome["status"] != "ok"]
    if not allows_get:
        odd = [outcome for outcome in odd if "GET" not in outcome["name"]]
    assert odd == []


async def test_the_reference_clients_get_the_same_by_websocket_and_sse() -> None:
    async with served() as server:
        node = await run_node("clients.mjs", server.base, ADMIN, FEED)
        assert node.stdout is not None
        assert await node.stdout.readline() == b"ready\n"
        server.world.sessions.feed.upsert(a_session(2, name="New"))
        out, err = await asyncio.wait_for(node.communicate(), 20)
    assert node.returncode == 0, err.decode()
    got = json.loads(out)
    assert got["socket"] == got["events"]
    snapshot, delta = (result["data"]["outsideSessionFeed"] for result in got["socket"])
    assert snapshot["kind"] == "SNAPSHOT"
    assert delta["upserts"] == [{"id": session_id(2), "name": "New"}]
