"""A host, a device and an offer with fixed keys, and what they seal for each other."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.opening import Caller, Expected, HostIdentity
from sidestage.envelopes.sealing import Parties, seal_envelope
from sidestage.ids import DeviceId, HostId

EXAMPLES = 30
"""Of each property: all unit tests together end within ten seconds."""
VECTORS = Path(__file__).parents[2] / "docs" / "vectors"

HOST_KEY = PrivateKey.from_secret(b"\x01" * 32)
DEVICE_KEY = PrivateKey.from_secret(b"\x02" * 32)
STRANGER_KEY = PrivateKey.from_secret(b"\x09" * 32)
HOST_ID = HostId("host:1")
DEVICE_ID = DeviceId("device:1")
PARTIES = Parties(HOST_ID, HOST_KEY.public, DEVICE_ID, DEVICE_KEY.public)
SEALED_AT_MS = 1_796_065_033_465
OFFER = Subject("offer:1", "outside:1", SEALED_AT_MS + 12 * 3600 * 1000)
HOST = HostIdentity(HOST_ID, (HOST_KEY,))
CALLER = Caller(DEVICE_ID, DEVICE_KEY.public)
ANSWER = {"answer": "The second one", "question": "Which one?", "summary": "Two."}


def vectors(name: str) -> Any:
    """Return the committed vectors of that name."""
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def seal_answer(
    content: Mapping[str, Any] = ANSWER,
    *,
    purpose: Purpose = Purpose.HANDOVER_ANSWER,
    parties: Parties = PARTIES,
    subject: Subject = OFFER,
    sender: PrivateKey = DEVICE_KEY,
) -> Envelope:
    """Return an answer from the device, with fresh randomness."""
    return seal_envelope(
        content,
        purpose=purpose,
        parties=parties,
        subject=subject,
        sender=sender,
        sealed_at_ms=SEALED_AT_MS,
    )


def expect(**changes: Any) -> Expected:
    """Return what the host expects of an answer to the offer."""
    values: dict[str, Any] = {
        "purpose": Purpose.HANDOVER_ANSWER,
        "host": HOST,
        "caller": CALLER,
        "known": None,
        "subject": OFFER,
        "now_ms": SEALED_AT_MS + 1000,
    }
    return Expected(**values | changes)
