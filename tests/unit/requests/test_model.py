"""The values of a request: what an answer is bound to."""

from datetime import UTC, datetime

import pytest

from sidestage.requests.model import RequestState, Suggestion, request_digest
from tests.fakes.agent_requests import a_request


def test_the_digest_binds_name_and_input_each_for_itself() -> None:
    assert request_digest("Bash", '{"command":"ls"}') == (
        "abd56be38cb6f646158d7f9c7ae623186b00819d6b399f0529349f5f495b2e2a"
    )
    assert request_digest("Bas", "h{}") != request_digest("Bash", "{}")


@pytest.mark.parametrize("state", RequestState)
def test_what_waits_for_a_person_is_open(state: RequestState) -> None:
    settled = {RequestState.ANSWERED, RequestState.WITHDRAWN, RequestState.TIMED_OUT}
    assert state.is_open == (state not in settled)


@pytest.mark.parametrize(
    ("destination", "needs_admin"),
    [("session", False), ("localSettings", True), ("", True)],
)
def test_only_what_dies_with_the_session_needs_no_admin(
    destination: str, *, needs_admin: bool
) -> None:
    suggestion = Suggestion("{}", destination, is_forbidden=False)
    assert suggestion.needs_admin is needs_admin


def test_an_envelope_names_the_request_its_session_and_its_expiry() -> None:
    request = a_request(expires_at=datetime(2026, 12, 2, tzinfo=UTC))
    assert request.subject.subject_id == request.id
    assert request.subject.session_id == request.session_id
    assert request.subject.expires_at_ms == 1_796_169_600_000
