import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.envelopes.encoding import (
    decode_base64,
    decode_base64url,
    encode_base64,
    encode_base64url,
)
from sidestage.errors import InvalidInput
from tests.fakes.envelopes import EXAMPLES, vectors

VECTORS = vectors("base64")


@pytest.mark.parametrize("vector", VECTORS["accepted"], ids=lambda v: repr(v["text"]))
def test_the_one_spelling_is_taken_and_written(vector: dict[str, str]) -> None:
    raw = bytes.fromhex(vector["hex"])
    assert decode_base64(vector["text"]) == raw
    assert encode_base64(raw) == vector["text"]


@pytest.mark.parametrize("text", VECTORS["refused"], ids=repr)
def test_every_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        decode_base64(text)


def test_pythons_decoder_takes_a_second_spelling() -> None:
    """Why the encoding is compared: `validate=True` looks at characters only."""
    assert base64.b64decode("QR==", validate=True) == base64.b64decode("QQ==")


@settings(max_examples=EXAMPLES)
@given(st.text(alphabet="AQRgw+/-_= \n", max_size=12))
def test_no_two_texts_decode_to_the_same_bytes(text: str) -> None:
    try:
        raw = decode_base64(text)
    except InvalidInput:
        return
    assert encode_base64(raw) == text


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=60))
def test_bytes_come_back_from_the_url_alphabet(raw: bytes) -> None:
    text = encode_base64url(raw)
    assert "=" not in text
    assert decode_base64url(text, length_bytes=len(raw)) == raw


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "A" * 21,
        "A" * 23,
        "A" * 21 + "B",
        "A" * 20 + "+A",
        "A" * 20 + "/A",
        "A" * 20 + "==",
        "A" * 20 + "\n\n",
        "À" + "A" * 21,
    ],
    ids=repr,
)
def test_an_id_has_one_spelling_too(text: str) -> None:
    with pytest.raises(InvalidInput):
        decode_base64url(text, length_bytes=16)
