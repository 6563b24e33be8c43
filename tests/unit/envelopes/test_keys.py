import hashlib
import secrets

import nacl.bindings
import pytest

from sidestage.envelopes.encoding import encode_base64url
from sidestage.envelopes.keys import (
    KeyRefused,
    PrivateKey,
    PublicKey,
    agree,
    parse_public_key,
)
from sidestage.errors import ErrorCode
from tests.fakes.envelopes import DEVICE_KEY, HOST_KEY, vectors

VECTORS = vectors("keys")


@pytest.mark.parametrize("vector", VECTORS["keyIds"], ids=lambda v: str(v["keyId"]))
def test_a_key_has_the_id_of_the_vectors(vector: dict[str, str]) -> None:
    key = PublicKey(bytes.fromhex(vector["key"]))
    assert key.key_id == vector["keyId"]
    digest = hashlib.sha256(b"sidestage/key/v1" + key.raw).digest()
    assert encode_base64url(digest[:12]) == vector["keyId"]


def test_a_good_key_is_taken() -> None:
    assert parse_public_key(DEVICE_KEY.public.raw, own=HOST_KEY) == DEVICE_KEY.public


@pytest.mark.parametrize("vector", VECTORS["smallOrder"], ids=lambda v: str(v["about"]))
def test_a_point_of_small_order_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(KeyRefused, match="small order") as refused:
        parse_public_key(bytes.fromhex(vector["key"]), own=HOST_KEY)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "vector", VECTORS["secondSpellings"], ids=lambda v: str(v["about"])
)
def test_a_second_spelling_of_a_point_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(KeyRefused, match="second spelling"):
        parse_public_key(bytes.fromhex(vector["key"]), own=HOST_KEY)


def test_an_alias_would_agree_on_the_same_secret() -> None:
    """Why aliases are refused: X25519 takes them, so one key had two ids."""
    raw = DEVICE_KEY.public.raw
    alias = PublicKey(raw[:31] + bytes([raw[31] | 0x80]))
    assert agree(HOST_KEY, alias) == agree(HOST_KEY, DEVICE_KEY.public)
    assert alias.key_id != DEVICE_KEY.public.key_id


@pytest.mark.parametrize("key", VECTORS["wrongLengths"], ids=len)
def test_a_key_of_another_length_is_refused(key: str) -> None:
    with pytest.raises(KeyRefused, match="32 bytes"):
        parse_public_key(bytes.fromhex(key), own=HOST_KEY)


def test_our_own_key_come_back_is_refused() -> None:
    with pytest.raises(KeyRefused, match="own"):
        parse_public_key(HOST_KEY.public.raw, own=HOST_KEY)


def test_a_zero_secret_is_refused_even_if_the_library_lets_it_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        nacl.bindings, "crypto_scalarmult", lambda secret, point: bytes(32)
    )
    with pytest.raises(KeyRefused, match="small order"):
        agree(HOST_KEY, DEVICE_KEY.public)


def test_both_sides_agree_on_one_secret() -> None:
    one, other = PrivateKey.generate(), PrivateKey.generate()
    assert agree(one, other.public) == agree(other, one.public)
    assert one.public != other.public


def test_a_private_key_shows_its_secret_nowhere() -> None:
    key = PrivateKey.from_secret(secrets.token_bytes(32))
    for shown in (repr(key), str(key), f"{key}"):
        assert key.secret.hex() not in shown
        assert repr(key.secret) not in shown


def test_a_private_key_of_another_length_is_a_bug() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        PrivateKey.from_secret(bytes(31))
