import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.envelopes.content import (
    OTHER_FIELDS,
    TEXT_FIELDS,
    decode_content,
    encode_content,
)
from sidestage.envelopes.envelope import (
    CIPHERTEXT_LIMIT_BYTES,
    PLAINTEXT_LIMIT_BYTES,
    Fault,
    Purpose,
)
from sidestage.envelopes.hpke import TAG_BYTES
from sidestage.errors import EnvelopeInvalid, InvalidInput
from tests.fakes.envelopes import ANSWER, EXAMPLES

ANSWERING = Purpose.HANDOVER_ANSWER
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def content_for(purpose: Purpose) -> dict[str, Any]:
    texts: dict[str, Any] = dict.fromkeys(sorted(TEXT_FIELDS[purpose]), "text")
    return texts | {name: ["VIEW"] for name in OTHER_FIELDS.get(purpose, ())}


@pytest.mark.parametrize("purpose", Purpose)
def test_what_is_encoded_for_a_purpose_is_decoded(purpose: Purpose) -> None:
    content = content_for(purpose)
    plaintext = encode_content(purpose, content)
    assert json.loads(plaintext) == {"v": 1, **content}
    assert decode_content(purpose, plaintext) == content


@settings(max_examples=EXAMPLES)
@given(TEXT, TEXT, TEXT)
def test_any_text_comes_back_and_its_length_is_hidden(
    answer: str, question: str, summary: str
) -> None:
    content = {"answer": answer, "question": question, "summary": summary}
    plaintext = encode_content(ANSWERING, content)
    assert len(plaintext) % 256 == 0
    assert len(plaintext) - len(plaintext.rstrip(b" ")) < 256
    assert decode_content(ANSWERING, plaintext) == content


def of_json_size(size_bytes: int) -> dict[str, str]:
    empty = {"answer": "", "question": "", "summary": ""}
    overhead = len(encode_content(ANSWERING, empty).rstrip(b" "))
    return empty | {"answer": "a" * (size_bytes - overhead)}


@pytest.mark.parametrize(("size", "padded"), [(255, 256), (256, 256), (257, 512)])
def test_padding_fills_the_block_and_no_more(size: int, padded: int) -> None:
    assert len(encode_content(ANSWERING, of_json_size(size))) == padded


def test_the_largest_content_fits_into_an_envelope() -> None:
    content = of_json_size(PLAINTEXT_LIMIT_BYTES)
    plaintext = encode_content(ANSWERING, content)
    assert len(plaintext) + TAG_BYTES <= CIPHERTEXT_LIMIT_BYTES == 65_808
    assert decode_content(ANSWERING, plaintext + b" " * 256) == content


def test_content_over_the_limit_is_not_sealed() -> None:
    with pytest.raises(InvalidInput, match="65536 bytes"):
        encode_content(ANSWERING, of_json_size(PLAINTEXT_LIMIT_BYTES + 1))


def test_content_over_the_limit_is_not_taken_either() -> None:
    text = json.dumps({"v": 1, **ANSWER, "more": "m" * PLAINTEXT_LIMIT_BYTES})
    with pytest.raises(EnvelopeInvalid) as refused:
        decode_content(ANSWERING, text.encode())
    assert refused.value.fault == Fault.SIZE


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"answer": "a", "question": "q"},
        ANSWER | {"answer": None},
        ANSWER | {"answer": ["a"]},
        ANSWER | {"v": 2},
        ANSWER | {"answer": "\ud800"},
        ANSWER | {"extra": b"bytes"},
    ],
    ids=repr,
)
def test_content_of_another_form_is_not_sealed(content: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        encode_content(ANSWERING, content)


ANSWER_JSON = json.dumps(ANSWER)[1:].encode()


@pytest.mark.parametrize(
    "plaintext",
    [
        b"",
        b"   ",
        b"{}",
        b"[]",
        b"null",
        b'"text"',
        b"{" + ANSWER_JSON,
        b'{"v":2,' + ANSWER_JSON,
        b'{"v":true,' + ANSWER_JSON,
        b'{"v":1.0,' + ANSWER_JSON,
        b'{"v":"1",' + ANSWER_JSON,
        b'{"v":1,"answer":1,"question":"","summary":""}',
        b'{"v":1,"question":"","summary":""}',
        b'{"v":1,' + ANSWER_JSON + b"{}",
        b'{"v":1,' + ANSWER_JSON + b"\x00",
        b'{"v":1,"x":NaN,' + ANSWER_JSON,
        b'{"v":1,"x":"\\ud800",' + ANSWER_JSON,
        b'{"v":1,"x":"\xff",' + ANSWER_JSON,
        b'\xef\xbb\xbf{"v":1,' + ANSWER_JSON,
        b'{"v":1,"x":' + b"[" * 5000 + b"]" * 5000 + b"," + ANSWER_JSON,
    ],
    ids=lambda text: repr(text[:20] + text[-3:]),
)
def test_a_sealed_text_of_another_form_is_refused(plaintext: bytes) -> None:
    with pytest.raises(EnvelopeInvalid) as refused:
        decode_content(ANSWERING, plaintext)
    assert refused.value.fault == Fault.CONTENT


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=400))
def test_garbage_is_refused_and_nothing_else_happens(plaintext: bytes) -> None:
    with pytest.raises(EnvelopeInvalid):
        decode_content(ANSWERING, plaintext)


@pytest.mark.parametrize("purpose", OTHER_FIELDS)
def test_a_field_that_is_no_text_must_be_there_too(purpose: Purpose) -> None:
    content = content_for(purpose)
    for name in OTHER_FIELDS[purpose]:
        del content[name]
    with pytest.raises(InvalidInput):
        encode_content(purpose, content)
    with pytest.raises(EnvelopeInvalid):
        decode_content(purpose, json.dumps({"v": 1, **content}).encode())


def test_what_a_newer_client_adds_is_left_for_its_reader() -> None:
    text = b'{"later":[1],"v":1,' + ANSWER_JSON
    assert decode_content(ANSWERING, text) == {"later": [1], **ANSWER}


def test_a_text_without_padding_is_taken() -> None:
    assert decode_content(ANSWERING, b'{"v":1,' + ANSWER_JSON) == ANSWER
