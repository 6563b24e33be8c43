"""Requests of agents for tests, with what a test does not care about filled in."""

from datetime import timedelta
from typing import Any, Final

from sidestage.requests.model import (
    AgentRequest,
    RequestId,
    RequestKind,
    RequestOrigin,
)
from sidestage.sessions.model import Process
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
