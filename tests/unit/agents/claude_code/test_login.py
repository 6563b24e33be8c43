"""Two copies of a login that follow each other."""

import os
from pathlib import Path

import pytest

from sidestage.agents.claude_code.login import LOGIN_LIMIT_BYTES, LoginPair

FIRST, SECOND, THIRD = '{"n": 1}', '{"n": 2}', '{"n": 3}'


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
def test_of_two_refreshes_the_newer_wins(agreed: LoginPair, newer: str) -> None:
    agreed.inside.write_text(SECOND)
    agreed.outside.write_text(THIRD)
    for side in ("inside", "outside"):
        seconds = 2000 if side == newer else 1000
        os.utime(getattr(agreed, side), (seconds, seconds))
    expected = SECOND if newer == "inside" else THIRD
    agreed.follow()
    assert contents(agreed) == (expected, expected)


def test_a_logout_on_one_side_is_not_undone_nor_passed_on(agreed: LoginPair) -> None:
    agreed.inside.unlink()
    agreed.follow()
    assert not agreed.inside.exists()
    assert agreed.outside.read_text() == FIRST
    agreed.outside.unlink()
    agreed.inside.write_text(FIRST)
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
