"""Two copies of a login that follow each other."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code.login import LOGIN_LIMIT_BYTES, LoginPair
from tests.fakes.logins import make_login

FIRST, SECOND, THIRD = map(make_login, (1, 2, 3))


@pytest.fixture
def pair(tmp_path: Path) -> LoginPair:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    return LoginPair(
        inside=tmp_path / "in/.credentials.json",
        outside=tmp_path / "out/.credentials.json",
        agreed=tmp_path / "agreed",
    )


@pytest.fixture
def agreed(pair: LoginPair) -> LoginPair:
    pair.outside.write_text(FIRST)
    pair.follow()
    return pair


def contents(pair: LoginPair) -> tuple[str, str]:
    return pair.inside.read_text(), pair.outside.read_text()


def test_the_owner_s_login_goes_in_with_mode_0600(agreed: LoginPair) -> None:
    assert contents(agreed) == (FIRST, FIRST)
    assert agreed.inside.stat().st_mode & 0o777 == 0o600


def test_without_a_login_nothing_is_made(pair: LoginPair) -> None:
    pair.follow()
    assert not pair.inside.exists()
    assert not pair.outside.exists()


def test_a_login_made_inside_comes_out_with_mode_0600(pair: LoginPair) -> None:
    pair.inside.write_text(FIRST)
    pair.follow()
    assert contents(pair) == (FIRST, FIRST)
    assert pair.outside.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("side", ["inside", "outside"])
def test_a_refresh_on_either_side_reaches_the_other(
    agreed: LoginPair, side: str
) -> None:
    getattr(agreed, side).write_text(SECOND)
    agreed.follow()
    assert contents(agreed) == (SECOND, SECOND)
    agreed.follow()
    assert contents(agreed) == (SECOND, SECOND)


@pytest.mark.parametrize("newer", ["inside", "outside"])
def test_of_two_refreshes_the_one_that_ends_later_wins(
    agreed: LoginPair, newer: str
) -> None:
    """The file's time decided, which the program inside may set."""
    older = "outside" if newer == "inside" else "inside"
    getattr(agreed, older).write_text(SECOND)
    getattr(agreed, newer).write_text(THIRD)
    os.utime(getattr(agreed, older), (4_000_000_000, 4_000_000_000))
    agreed.follow()
    assert contents(agreed) == (THIRD, THIRD)


def test_a_logout_on_one_side_is_not_undone_nor_passed_on(agreed: LoginPair) -> None:
    agreed.inside.unlink()
    agreed.follow()
    assert not agreed.inside.exists()
    assert agreed.outside.read_text() == FIRST
    agreed.outside.unlink()
    for login in (FIRST, SECOND):
        agreed.inside.write_text(login)
        agreed.follow()
        assert not agreed.outside.exists()


def test_a_link_planted_inside_does_not_read_another_file(agreed: LoginPair) -> None:
    """It would have been copied out, or kept as the login."""
    other = agreed.agreed.with_name("other")
    other.write_text(SECOND)
    agreed.inside.unlink()
    agreed.inside.symlink_to(other)
    agreed.follow()
    assert agreed.outside.read_text() == FIRST
    agreed.outside.write_text(THIRD)
    agreed.follow()
    assert contents(agreed) == (THIRD, THIRD)
    assert other.read_text() == SECOND


def test_a_pipe_planted_inside_does_not_hang_us(agreed: LoginPair) -> None:
    agreed.inside.unlink()
    os.mkfifo(agreed.inside)
    agreed.follow()
    assert agreed.outside.read_text() == FIRST


OTHERS: list[dict[str, Any]] = [
    {"accountUuid": "account-2"},
    {"accountUuid": None},
    {"organizationUuid": "organization-2"},
    {"subscriptionType": "pro"},
    {"clientId": None, "scopes": ["user:inference"]},
    {"scopes": None},
    {"expiresAt": 1_800_000_000_001},  # no later than the first
    {"expiresAt": "1900000000000"},
    {"expiresAt": 1.9e12},
    {"expiresAt": True},
    {"expiresAt": 2**60},
    {"accessToken": ""},
    {"accessToken": "two words"},
    {"refreshToken": None},
    {"refreshToken": ["x"]},
]


@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_what_is_no_refresh_of_the_owner_s_login_stays_inside(
    agreed: LoginPair, changes: dict[str, Any]
) -> None:
    """Any JSON object replaced the owner's login: another account's, or nonsense."""
    written = make_login(2, **changes)
    agreed.inside.write_text(written)
    assert not agreed.follow()
    assert contents(agreed) == (written, FIRST)
    agreed.outside.write_text(THIRD)
    agreed.follow()
    assert contents(agreed) == (THIRD, THIRD)
    assert agreed.follow()


@pytest.mark.parametrize("content", ['{"n": 2}', '{"claudeAiOauth": []}'])
def test_any_object_is_no_login(pair: LoginPair, content: str) -> None:
    pair.inside.write_text(content)
    assert not pair.follow()
    assert not pair.outside.exists()
    pair.outside.write_text("what we do not understand")
    pair.inside.write_text(FIRST)
    assert not pair.follow()
    assert contents(pair) == (FIRST, "what we do not understand")


def test_a_refresh_brings_tokens_out_and_nothing_else(pair: LoginPair) -> None:
    """A file written inside replaced the owner's whole, other services' too."""
    owner = {**json.loads(make_login(1, clientId=None)), "mcpOAuth": {"mine": 1}}
    pair.outside.write_text(json.dumps(owner))
    pair.follow()
    written = json.loads(make_login(2, rateLimitTier="forged", refreshTokenExpiresAt=5))
    pair.inside.write_text(json.dumps({**written, "mcpOAuth": {"evil": 1}}))
    assert pair.follow()
    oauth = {
        **owner["claudeAiOauth"],
        "accessToken": "access-2",
        "refreshToken": "refresh-2",
        "expiresAt": 1_800_000_000_002,
    }
    after = {**owner, "claudeAiOauth": oauth}
    assert json.loads(pair.outside.read_text()) == after
    # Nothing is left to do: neither copy changed since.
    inside = pair.inside.read_text()
    assert pair.follow()
    assert pair.inside.read_text() == inside
    assert json.loads(pair.outside.read_text()) == after


def test_of_a_first_login_only_the_login_comes_out(pair: LoginPair) -> None:
    written = {
        **json.loads(FIRST),
        "mcpOAuth": {"evil": 1},
        "organizationUuid": "organization-1",
    }
    pair.inside.write_text(json.dumps(written))
    assert pair.follow()
    del written["mcpOAuth"]
    assert json.loads(pair.outside.read_text()) == written


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"n": "%s"}' % ("x" * LOGIN_LIMIT_BYTES)]
)
def test_what_is_no_login_is_not_copied_out(agreed: LoginPair, content: str) -> None:
    agreed.inside.write_text(content)
    agreed.follow()
    assert agreed.outside.read_text() == FIRST


def test_a_link_of_the_owner_s_is_followed(agreed: LoginPair) -> None:
    real = agreed.outside.with_name("real.json")
    agreed.outside.rename(real)
    agreed.outside.symlink_to(real)
    agreed.inside.write_text(SECOND)
    agreed.follow()
    assert agreed.outside.is_symlink()
    assert real.read_text() == SECOND
