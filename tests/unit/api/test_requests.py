"""What transports send, read before anything else: a value or the promised error."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.operations import Request
from api.requests import check_client, parse_bearer, parse_json, parse_request
from sidestage.errors import ClientTooOld, InvalidInput, Unauthenticated
from tests.fakes.json_values import VALUES, damaged

GOOD = {
    "query": "{ server { version } }",
    "variables": {"a": 1},
    "operationName": "A",
    "extensions": {},
}


def is_read_or_refused(value: object) -> None:
    try:
        request = parse_request(value)
    except InvalidInput:
        return
    assert isinstance(request, Request)
    assert isinstance(request.query, str)
    assert isinstance(request.variables, dict)
    assert request.operation_name is None or isinstance(request.operation_name, str)


@given(VALUES)
def test_any_json_is_a_request_or_refused(value: object) -> None:
    is_read_or_refused(value)


@given(damaged(GOOD))
def test_a_damaged_request_is_read_or_refused(value: object) -> None:
    is_read_or_refused(value)


@given(st.one_of(st.binary(), VALUES.map(lambda value: json.dumps(value).encode())))
def test_any_body_is_json_or_refused(body: bytes) -> None:
    with suppress(InvalidInput):
        is_read_or_refused(parse_json(body))


@pytest.mark.parametrize("depth", [10, 1_000, 100_000])
def test_no_depth_upsets_the_reader(depth: int) -> None:
    with suppress(InvalidInput):
        parse_json(b"[" * depth + b"]" * depth)


@given(st.lists(st.one_of(st.text(), st.text().map("Bearer {}".format)), max_size=3))
def test_any_headers_hold_a_token_none_or_are_refused(headers: list[str]) -> None:
    try:
        token = parse_bearer(headers)
    except Unauthenticated:
        assert headers
        return
    assert (token is None) == (not headers)


@given(st.one_of(st.text(), st.from_regex(r"[a-z]{1,9}/[0-9.]{0,30}")))
def test_any_client_is_served_or_too_old(client: str) -> None:
    with suppress(ClientTooOld):
        check_client(client, "1.2.3")
    check_client(client, "0")
