"""The companion WebSocket's messages: strict, and documented."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal_host.gateway.messages import (
    CLIENT_MESSAGES,
    INPUT_LIMIT_BYTES,
    SERVER_MESSAGES,
    SUBPROTOCOL,
    TEXT_LIMIT_BYTES,
    Ack,
    Attach,
    Claim,
    CloseCode,
    Exit,
    Gap,
    MessageInvalid,
    Ping,
    Pong,
    Resize,
    encode_message,
    parse_message,
)
from tests.fakes.json_values import VALUES, damaged

DOCUMENT = (Path(__file__).parents[3] / "docs" / "terminal-protocol.md").read_text(
    "utf-8"
)


def documented(heading: str) -> dict[str, tuple[str, ...]]:
    """Return the fields of each message in the table under *heading*."""
    section = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", section, re.MULTILINE)
    return {name: tuple(re.findall(r"`(\w+)`", text)) for name, text in rows}


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("Messages from the client", CLIENT_MESSAGES),
        ("Messages from the server", SERVER_MESSAGES),
    ],
)
def test_the_document_lists_every_message_and_field(
    heading: str, kinds: tuple[type, ...]
) -> None:
    ours = {kind.type: tuple(f.name for f in fields(kind)) for kind in kinds}  # type: ignore[attr-defined]  # each has one
    assert documented(heading) == ours


def test_the_document_lists_every_close_code() -> None:
    rows = re.findall(r"^\| (\d{4}) \| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [
        (code.value, code.name) for code in CloseCode
    ]


def test_the_document_names_the_limits() -> None:
    assert SUBPROTOCOL in DOCUMENT
    assert f"at most {TEXT_LIMIT_BYTES} bytes" in DOCUMENT
    assert f"at most {INPUT_LIMIT_BYTES // 1024} KiB" in DOCUMENT


@pytest.mark.parametrize(
    "message",
    [
        Attach("secret"),
        Attach("secret", after=0, cols=1, rows=500),
        Resize(80, 24),
        Claim(80, 24),
        Ack(2**52),
        Ping(),
        Pong(),
    ],
)
def test_what_is_sent_is_what_is_read(
    message: Attach | Resize | Claim | Ack | Ping | Pong,
) -> None:
    assert parse_message(encode_message(message)) == message


def test_absent_fields_are_left_out() -> None:
    assert json.loads(encode_message(Exit(None, 5))) == {"type": "exit", "offset": 5}
    assert json.loads(encode_message(Gap(1, 2))) == {
        "type": "gap",
        "start": 1,
        "end": 2,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"type":"exit","offset":1}',
        '{"type":"attach"}',
        '{"type":"attach","ticket":""}',
        '{"type":"attach","ticket":1}',
        '{"type":"attach","ticket":"x","after":-1}',
        '{"type":"attach","ticket":"x","after":null}',
        '{"type":"attach","ticket":"x","after":true}',
        '{"type":"attach","ticket":"x","since":1}',
        '{"type":"resize","cols":80}',
        '{"type":"resize","cols":0,"rows":24}',
        '{"type":"resize","cols":501,"rows":24}',
        '{"type":"resize","cols":80.0,"rows":24}',
        '{"type":"claim","cols":"80","rows":24}',
        '{"type":"ack","offset":9007199254740992}',
        '{"type":["attach"]}',
        "[" * 3000,
    ],
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(MessageInvalid) as refused:
        parse_message(text)
    assert refused.value.code is CloseCode.INVALID


def test_an_over_long_message_is_refused_as_such() -> None:
    with pytest.raises(MessageInvalid) as refused:
        parse_message('{"type":"ping"}' + " " * TEXT_LIMIT_BYTES)
    assert refused.value.code is CloseCode.TOO_BIG


MESSAGES: list[dict[str, Any]] = [
    json.loads(encode_message(message))
    for message in (
        Attach("secret", after=0, cols=1, rows=500),
        Resize(80, 24),
        Claim(80, 24),
        Ack(5),
        Ping(),
    )
]


def is_read_or_refused(text: str) -> None:
    try:
        message = parse_message(text)
    except MessageInvalid:
        return
    assert isinstance(message, CLIENT_MESSAGES)
    assert parse_message(encode_message(message)) == message


@given(st.text(max_size=TEXT_LIMIT_BYTES + 10))
def test_any_text_is_read_or_refused(text: str) -> None:
    is_read_or_refused(text)


@given(VALUES)
def test_any_json_is_read_or_refused(value: object) -> None:
    is_read_or_refused(json.dumps(value))


@given(st.sampled_from(MESSAGES).flatmap(damaged))
def test_a_damaged_message_is_read_or_refused(message: dict[str, Any]) -> None:
    is_read_or_refused(json.dumps(message))


@given(st.integers(0, 2000), st.sampled_from(["type", "ticket", "x"]))
def test_no_depth_upsets_the_parser(depth: int, field: str) -> None:
    is_read_or_refused(f'{{"{field}":{"[" * depth}{"]" * depth}}}')
