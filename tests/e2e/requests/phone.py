"""A paired device that answers what live sessions ask, by the public protocol."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.envelopes.keys import PrivateKey
from sidestage.envelopes.pairing import PairingLink, parse_pairing_link
from sidestage.envelopes.sealing import Parties, seal_envelope, unseal_envelope
from sidestage.ids import DeviceId
from sidestage.requests.model import request_digest
from tests.e2e.running_server import Feed, Json, RunningServer
from tests.fakes.phone import Phone

ENVELOPE: Final = """envelope { purpose hostId hostKeyId deviceId deviceKeyId subjectId
  sessionId messageId sealedAtMs expiresAtMs enc ciphertext }"""
BARE: Final = """id kind state expiresAtMs hasTimedOut settledBy verdict sessionId
  session { state waitingFor { kind toolName } }"""
CONTENT: Final = """content { toolName inputJson digest plan
  suggestions { json destination needsAdmin isForbidden }
  questions { text header multiSelect options { label description } } }"""
ANSWER: Final = """mutation Answer($input: AnswerRequestInput!) {
  answerRequest(input: $input) { __typename
    ... on AnswerRequestPayload { request { id state verdict } }
    ... on UserError { code message } } }"""
CREATE: Final = """mutation Create($input: CreatePairingInput!) {
  createPairing(input: $input) { ... on CreatePairingPayload { link pairing { id } }
    ... on UserError { code message } } }"""
CONFIRM: Final = """mutation Confirm($input: ConfirmPairingInput!) {
  confirmPairing(input: $input) { __typename ... on UserError { code message } } }"""
PAIR: Final = f"""mutation Pair($input: PairDeviceInput!) {{
  pairDevice(input: $input) {{ __typename
    ... on PairDevicePayload {{ state {ENVELOPE} }}
    ... on UserError {{ code message }} }} }}"""
SETTLED: Final = """query Settled($id: ID!) { node(id: $id) {
  ... on AgentRequest { state settledBy verdict hasTimedOut } } }"""


@dataclass
class AnsweringPhone:
    """One paired device with its key, its token and the pinned host key."""

    server: RunningServer
    link: PairingLink
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    token: str = ""
    device_id: str = ""
    reads_clear: bool = True

    @classmethod
    def pair(
        cls,
        server: RunningServer,
        *,
        scopes: tuple[str, ...] = ("VIEW", "READ", "ANSWER"),
        content: str = "CLEAR",
    ) -> "AnsweringPhone":
        """Pair a new device; the server's owner types the code."""
        wish = {"scopes": list(scopes), "content": content}
        made = server.query(CREATE, {"input": wish})["createPairing"]
        phone = cls(server, parse_pairing_link(made["link"]))
        phone.reads_clear = "READ" in scopes
        asked = {"input": phone._pairing_request()}
        pending = phone.post(PAIR, asked)["pairDevice"]
        code = phone.open(pending["envelope"])["code"]
        confirm = {"pairingId": made["pairing"]["id"], "code": code}
        answer = server.query(CONFIRM, {"input": confirm})["confirmPairing"]
        assert answer["__typename"] == "ConfirmPairingPayload", answer
        done = phone.post(PAIR, asked)["pairDevice"]
        credentials = phone.open(done["envelope"])
        phone.token, phone.device_id = credentials["token"], credentials["deviceId"]
        phone.post("{ viewer { kind } }")  # the first use makes it active
        return phone

    def _pairing_request(self) -> Json:
        request = Phone(self.link, key=self.key).request()
        return {
            "pairingId": request.pairing_id,
            "deviceKey": _base64(request.device_key),
            "name": request.name,
            "platform": request.platform,
            "nonce": _base64(request.nonce),
            "proof": _base64(request.proof),
        }

    def post(self, document: str, variables: Mapping[str, Any] | None = None) -> Json:
        """Run an operation as this device; return its data."""
        body = self.post_raw(document, variables)
        assert "errors" not in body, body
        data: Json = body["data"]
        return data

    def post_raw(
        self, document: str, variables: Mapping[str, Any] | None = None
    ) -> Json:
        """Run an operation as this device; return the whole answer."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        answer = httpx.post(
            f"{self.server.url}/graphql",
            json={"query": document, "variables": variables or {}},
            headers=headers,
            timeout=self.server.patience_seconds,
        )
        body: Json = answer.json()
        return body

    @contextmanager
    def follow(self) -> Iterator[Feed]:
        """Follow what waits for a person, as this device."""
        shown = CONTENT if self.reads_clear else ENVELOPE
        document = f"""subscription {{ requestFeed {{
          kind cursor more removedIds upserts {{ {BARE} {shown} }} }} }}"""
        with connect(
            self.server.url.replace("http", "ws") + "/graphql",
            subprotocols=[Subprotocol("graphql-transport-ws")],
            max_size=2**24,
        ) as connection:
            feed = Feed(connection)
            feed.open(self.token, document, {})
            feed.next()
            yield feed

    def settled(self, request_id: str) -> Json:
        """Return what became of a request."""
        node: Json = self.post(SETTLED, {"id": request_id})["node"]
        return node

    def open(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Open an envelope with the pinned host key."""
        envelope = Envelope.from_fields({key: str(it) for key, it in fields.items()})
        return unseal_envelope(envelope, recipient=self.key, sender=self.link.host_key)

    def shown(self, request: Json) -> str:
        """Return the digest of what this device shows of the request."""
        told = (
            request["content"] if self.reads_clear else self.open(request["envelope"])
        )
        return request_digest(told["toolName"], told["inputJson"])

    def seal(
        self,
        request: Json,
        decision: str,
        selections: Any = (),
        *,
        note: str = "",
        shown: str | None = None,
    ) -> dict[str, str]:
        """Seal an answer to *request*."""
        return seal_envelope(
            {
                "decision": decision,
                "note": note,
                "selections": list(selections),
                "shown": self.shown(request) if shown is None else shown,
            },
            purpose=Purpose.REQUEST_ANSWER,
            parties=Parties(
                self.link.host_id,
                self.link.host_key,
                DeviceId(self.device_id),
                self.key.public,
            ),
            subject=Subject(
                request["id"], request["sessionId"], int(request["expiresAtMs"])
            ),
            sender=self.key,
            sealed_at_ms=0,
        ).to_fields()

    def send(self, request: Json, envelope: Mapping[str, str]) -> Json:
        """Send a sealed answer; return the union's member."""
        given = {"requestId": request["id"], "envelope": envelope}
        answer: Json = self.post(ANSWER, {"input": given})["answerRequest"]
        return answer

    def answer(
        self, request: Json, decision: str, selections: Any = (), *, note: str = ""
    ) -> Json:
        """Answer *request*; return the union's member."""
        return self.send(request, self.seal(request, decision, selections, note=note))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
