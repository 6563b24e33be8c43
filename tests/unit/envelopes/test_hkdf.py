import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestage.envelopes.hkdf import OUTPUT_LIMIT_BYTES, expand, extract
from tests.fakes.envelopes import EXAMPLES


@pytest.mark.parametrize(
    ("salt", "info", "prk", "output"),
    [
        (
            bytes(range(13)),
            bytes(range(0xF0, 0xFA)),
            "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
            (
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                "34007208d5b887185865"
            ),
        ),
        (
            b"",
            b"",
            "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
            (
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                "9d201395faa4b61a96c8"
            ),
        ),
    ],
    ids=["RFC 5869 A.1", "RFC 5869 A.3"],
)
def test_the_vectors_of_the_rfc_come_out(
    salt: bytes, info: bytes, prk: str, output: str
) -> None:
    assert extract(salt, b"\x0b" * 22).hex() == prk
    assert expand(bytes.fromhex(prk), info, 42).hex() == output


@settings(max_examples=EXAMPLES)
@given(
    st.binary(max_size=80),
    st.binary(max_size=80),
    st.binary(max_size=80),
    st.integers(1, OUTPUT_LIMIT_BYTES),
)
def test_another_implementation_agrees(
    salt: bytes, key_material: bytes, info: bytes, length: int
) -> None:
    theirs = HKDF(SHA256(), length, salt, info).derive(key_material)
    assert expand(extract(salt, key_material), info, length) == theirs


def test_more_than_the_counter_can_count_is_refused() -> None:
    with pytest.raises(ValueError, match="8160"):
        expand(bytes(32), b"", OUTPUT_LIMIT_BYTES + 1)
