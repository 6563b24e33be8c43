"""A paired device in Python: what an app does with offers and answers.

It uses the public protocol only: GraphQL, and envelopes as docs/handover-protocol.md
tells them.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.pairing import PairingClaim, PairingLink, parse_pairing_link
from sidestage.envelopes.sealing import Parties, seal_envelope, unseal_envelope
from sidestage.ids import DeviceId
from tests.e2e.running_server import Feed, Json, RunningServer

ENVELOPE: Final = """envelope { purpose hostId hostKeyId deviceId deviceKeyId subjectId
  sessionId messageId sealedAtMs expiresAtMs enc ciphertext }"""
OFFER: Final = f"""id state delivery expiresAt blockedBy lastFailure {{ code message }}
  session {{ id handedOffAt }}
  terminal {{ id state session {{ id }} }}
  continuation {{ id continuedFrom {{ id }} permissionMode }} {ENVELOPE}"""
OFFERS: Final = f"{{ handoverOffers(first: 50) {{ nodes {{ {OFFER} }} }} }}"
FEED: Final = f"""subscription {{ handoverOfferFeed {{
  kind cursor more removedIds upserts {{ {OFFER} }} }} }}"""
ANSWER: Final = f"""mutation Answer($input: AnswerHandoverInput!) {{
  answerHandover(input: $input) {{ __typename
    ... on AnswerHandoverPayload {{ offer {{ {OFFER} }} }}
    ... on OfferNotOpen {{ offerState currentOffer {{ id state }} }}
    ... on UserError {{ code message }} }} }}"""
PAIR: Final = f"""mutation Pair($input: PairDeviceInput!) {{
  pairDevice(input: $input) {{ __typename
    ... on PairDevicePayload {{ state {ENVELOPE} }}
    ... on UserError {{ code message }} }} }}"""
CREATE: Final = """mutation Create($input: CreatePairingInput!) {
  createPairing(input: $input) { ... on CreatePairingPayload { link pairing { id } }
    ... on UserError { code message } } }"""
CONFIRM: Final = """mutation Confirm($input: ConfirmPairingInput!) {
  confirmPairing(input: $input) { __typename ... on UserError { code message } } }"""


@dataclass
class PythonDevice:
    """One paired device with its key, its token and the pinned host key."""

    server: RunningServer
    link: PairingLink
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    token: str = ""
    device_id: str = ""
    frames: list[str] = field(default_factory=list)
    """Every answer of the server's, as it came."""

    @classmethod
    def pair(
        cls,
        server: RunningServer,
        *,
        name: str = "Ada’s phone",
        scopes: tuple[str, ...] = ("VIEW", "READ", "ANSWER", "TERMINAL"),
        content: str = "CLEAR",
    ) -> "PythonDevice":
        """Pair a new device; the server's owner types the code."""
        wish = {"scopes": list(scopes), "content": content}
        made = server.query(CREATE, {"input": wish})["createPairing"]
        device = cls(server, parse_pairing_link(made["link"]))
        request = device.pairing_request(name)
        pending = device.post(PAIR, {"input": request})["pairDevice"]
        code = device.open(pending["envelope"])["code"]
        confirm = {"pairingId": made["pairing"]["id"], "code": code}
        answer = server.query(CONFIRM, {"input": confirm})["confirmPairing"]
        assert answer["__typename"] == "ConfirmPairingPayload", answer
        done = device.post(PAIR, {"input": request})["pairDevice"]
        credentials = device.open(done["envelope"])
        device.token, device.device_id = credentials["token"], credentials["deviceId"]
        device.post("{ viewer { kind } }")
        return device

    def pairing_request(self, name: str) -> Json:
        """Return what asks to be paired."""
        nonce = bytes(16)
        claim = PairingClaim(
            pairing_id=self.link.pairing_id,
            host_id=self.link.host_id,
            host_key=self.link.host_key,
            device_key=self.key.public,
            name=name,
            platform="python",
            nonce=nonce,
        )
        return {
            "pairingId": self.link.pairing_id,
            "deviceKey": _base64(self.key.public.raw),
            "name": name,
            "platform": "python",
            "nonce": _base64(nonce),
            "proof": _base64(claim.prove(self.link.secret)),
        }

    def post(self, document: str, variables: Mapping[str, Any] | None = None) -> Json:
        """Run an operation as this device; return its data."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        answer = httpx.post(
            f"{self.server.url}/graphql",
            json={"query": document, "variables": variables or {}},
            headers=headers,
            timeout=self.server.patience_seconds,
        )
        self.frames.append(answer.text)
        body: Json = answer.json()
        assert "errors" not in body, body
        data: Json = body["data"]
        return data

    @contextmanager
    def follow(self) -> Iterator[Feed]:
        """Follow the offers as this device; its rows hold its own envelopes."""
        with connect(
            self.server.url.replace("http", "ws") + "/graphql",
            subprotocols=[Subprotocol("graphql-transport-ws")],
            max_size=2**24,
        ) as connection:
            feed = Feed(connection)
            feed.open(self.token, FEED, {})
            yield feed
            self.frames += [json.dumps(message) for message in feed.messages]

    def wait_offer(self, holds: Callable[[Json], object]) -> Json:
        """Return the first offer for which *holds* is true, once there is one."""
        with self.follow() as feed:
            feed.until(lambda: any(map(holds, feed.rows.values())), seconds=60)
            return next(row for row in feed.rows.values() if holds(row))

    def open(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Open an envelope with the pinned host key."""
        envelope = Envelope.from_fields({key: str(it) for key, it in fields.items()})
        return unseal_envelope(envelope, recipient=self.key, sender=self.link.host_key)

    def offers(self) -> list[Json]:
        """Return the offers as the list shows them to this device."""
        nodes: list[Json] = self.post(OFFERS)["handoverOffers"]["nodes"]
        return nodes

    def offer(self, offer_id: str) -> Json:
        """Return an offer as it is now."""
        [found] = [it for it in self.offers() if it["id"] == offer_id]
        return found

    def seal(self, offer: Json, answer: str) -> dict[str, str]:
        """Seal an answer to *offer*, echoing what it said."""
        told = self.open(offer["envelope"])
        header = offer["envelope"]
        return seal_envelope(
            {
                "answer": answer,
                "question": told["question"],
                "summary": told["summary"],
            },
            purpose=Purpose.HANDOVER_ANSWER,
            parties=Parties(
                self.link.host_id,
                self.link.host_key,
                DeviceId(self.device_id),
                self.key.public,
            ),
            subject=Subject(
                offer["id"], header["sessionId"], int(header["expiresAtMs"])
            ),
            sender=self.key,
            sealed_at_ms=0,
        ).to_fields()

    def send(self, offer: Json, envelope: Mapping[str, str]) -> Json:
        """Send a sealed answer; return the union's member."""
        given = {"offerId": offer["id"], "envelope": envelope}
        answer: Json = self.post(ANSWER, {"input": given})["answerHandover"]
        return answer

    def answer(self, offer: Json, text: str) -> Json:
        """Answer *offer*; return the union's member."""
        return self.send(offer, self.seal(offer, text))

    def clear_text(self) -> str:
        """Return all that this device was sent."""
        return "\n".join(json.dumps(frame) for frame in self.frames)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
