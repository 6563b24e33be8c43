"""Generated operations for every query and mutation (api.md, line 10).

Each field of the schema's roots is a case of its own; its arguments and selections are
made up. What comes back must be GraphQL: no bug of ours (`INTERNAL`), no 5xx.
"""

import logging
import string
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis_graphql import nodes
from schemathesis.graphql import scalar

from api.limits import Limits
from resolvers.scalars import encode_base64
from tests.fakes.parts import BASE, make_world
from tests.fakes.tokens import ADMIN

EXAMPLES = 10
SEED_INDEPENDENT = True
"""The same operations each time: a found bug is found again."""

scalar("DateTime", st.datetimes().map(lambda t: f"{t.isoformat()}Z").map(nodes.String))
scalar("Base64", st.binary(max_size=40).map(encode_base64).map(nodes.String))
scalar("BigInt", st.integers().map(str).map(nodes.String))
scalar("FeedCursor", st.text(string.printable, max_size=40).map(nodes.String))

AUTHORIZED = {"Authorization": f"Bearer {ADMIN}", "Host": BASE.removeprefix("http://")}


world = make_world(limits=Limits(points_burst=1e9, cost=10**9, aliases=10**6))
schema = schemathesis.graphql.from_asgi("/graphql", app=world.app, headers=AUTHORIZED)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=SEED_INDEPENDENT,
    suppress_health_check=list(HealthCheck),
)
def test_no_made_up_operation_finds_a_bug(
    case: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    answer = case.call(headers=AUTHORIZED)
    assert answer.status_code < 500
    result = answer.json()
    codes = {error["extensions"]["code"] for error in result.get("errors", ())}
    assert "INTERNAL" not in codes, caplog.text
    assert "data" in result or codes
