"""Requests of agents for tests, with what a test does not care about filled in."""

from datetime import timedelta
from typing import Any, Final

from sidestage.devices.model import Devices, Principal
from sidestage.devices.sealing_desk import to_ms
from sidestage.envelopes.envelope import Envelope, Purpose
from sidestage.envelopes.keys import PublicKey
from sidestage.envelopes.sealing import Parties, seal_envelope
from sidestage.errors import SidestageError
from sidestage.feeds import Feed
from sidestage.ids import SessionId
from sidestage.requests.model import (
    AgentRequest,
    RequestId,
    RequestKind,
    RequestOrigin,
    Requests,
)
from sidestage.sessions.model import Process
from tests.fakes.envelopes import HOST_ID, HOST_KEY
from tests.fakes.values import START, session_id

RUN: Final = Process(4711, "123456")


def a_request(number: int = 1, **changes: Any) -> AgentRequest:
    """Return a pending permission request; the higher its number, the later it is."""
    began = START + timedelta(seconds=number)
    values: dict[str, Any] = {
        "id": RequestId(f"request:{number:032x}"),
        "session_id": session_id(1),
        "terminal_id": None,
        "kind": RequestKind.PERMISSION,
        "tool_name": "Bash",
        "input_json": f'{{"command":"touch made-{number}.txt"}}',
        "created_at": began,
        "expires_at": began + timedelta(hours=24),
        "state_since": began,
        "origin": RequestOrigin(
            run=RUN,
            tool_use_id=f"toolu_{number}",
            prompt_id="prompt-1",
            claim=b"c" * 32,
            event_digest=b"d" * 32,
        ),
    }
    return AgentRequest(**{**values, **changes})


class FakeRequests(Requests):
    """Holds the requests it is given; seals for every device there is."""

    def __init__(self, devices: Devices, *requests: AgentRequest) -> None:
        self._devices = devices
        self._feed: Feed[AgentRequest] = Feed(lambda request: request.id)
        self.error: SidestageError | None = None
        """What answering raises."""
        self.answered: list[tuple[str, Envelope, Principal]] = []
        for request in requests:
            self._feed.upsert(request)

    @property
    def feed(self) -> Feed[AgentRequest]:
        """The requests by id."""
        return self._feed

    def open_of(self, session_id: SessionId) -> tuple[AgentRequest, ...]:
        """Return the open requests of the session."""
        return tuple(
            request
            for request in self._feed.values()
            if request.session_id == session_id and request.state.is_open
        )

    def seal(self, request: AgentRequest, *, reader: Principal) -> Envelope | None:
        """Seal the digest for the reader's device."""
        device = reader.device_id and self._devices.feed.get(reader.device_id)
        if not device:
            return None
        content = {
            "toolName": request.tool_name,
            "inputJson": request.input_json,
            "digest": request.digest,
        }
        return seal_envelope(
            content,
            purpose=Purpose.REQUEST,
            parties=Parties(HOST_ID, HOST_KEY.public, device.id, PublicKey(device.key)),
            subject=request.subject,
            sender=HOST_KEY,
            sealed_at_ms=to_ms(request.created_at),
        )

    async def answer(
        self, request_id: str, envelope: Envelope, *, actor: Principal
    ) -> AgentRequest:
        """Note the answer and return the request, or raise `error`."""
        self.answered.append((request_id, envelope, actor))
        if self.error is not None:
            raise self.error
        request = self._feed.get(request_id)
        assert request is not None
        return request
