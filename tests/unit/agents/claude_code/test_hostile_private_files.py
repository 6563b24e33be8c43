"""What a program inside may leave in its private files to do harm outside."""

import json
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from sidestage.agents.claude_code.private_files import PRIVATE_CONFIG_LIMIT_BYTES
from sidestage.agents.claude_code.registry import read_registry
from sidestage.ids import TerminalId
from tests.fakes.logins import make_login
from tests.fakes.private_owner import TERMINAL, Owner

SECOND = TerminalId("terminal:2")


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def _make_socket(path: Path) -> None:
    short = f"/proc/self/fd/{os.open(path.parent, os.O_PATH)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/{path.name}")
    os.close(int(short.rpartition("/")[2]))


def _make_link(path: Path) -> None:
    secret = path.parent / "secret"
    secret.write_text('{"n": 1, "projects": {}}')
    path.symlink_to(secret)


def _make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


HOSTILE: list[Callable[[Path], None]] = [
    Path.mkdir,
    os.mkfifo,
    _make_socket,
    _make_link,
    lambda path: path.symlink_to(path),
    _make_huge,
]
hostile = pytest.mark.parametrize(
    "make", HOSTILE, ids=["folder", "pipe", "socket", "link", "loop", "huge"]
)


def _opened(root: Path) -> list[str]:
    """Return what this process holds open below *root*."""
    links = Path("/proc/self/fd").iterdir()
    targets = [str(link.readlink()) for link in links if link.is_symlink()]
    return [target for target in targets if target.startswith(str(root))]


@hostile
@pytest.mark.parametrize(
    "name", ["config/.credentials.json", "claude.json", "origin.json", "login.sha256"]
)
def test_whatever_stands_in_a_file_s_place_costs_nothing(
    owner: Owner, make: Callable[[Path], None], name: str
) -> None:
    """A folder for the login leaked a descriptor at each look, until none were left.

    Its private folder was never removed either, so it went on after a restart.
    """
    login = owner.config / ".credentials.json"
    login.write_text('{"n": 0}')
    owner.prepare()
    (owner.private / name).unlink()
    make(owner.private / name)
    before = owner.config_file.read_bytes()
    for _ in range(5):
        owner.files.sync_logins()
    owner.files.finish(TERMINAL)
    assert _opened(owner.home.parent) == []
    assert owner.config_file.read_bytes() == before
    assert login.read_text() == '{"n": 0}'
    assert owner.files.list_prepared() == ()


@hostile
def test_whatever_stands_in_a_registry_file_s_place_is_no_entry(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """A folder is opened like a file, and its descriptor must not stay."""
    make(tmp_path / "7.json")
    assert read_registry(tmp_path / "7.json") is None
    assert _opened(tmp_path) == []


def test_a_copy_of_the_configuration_that_is_no_longer_small_is_not_parsed(
    owner: Owner,
) -> None:
    """Up to 64 MB were parsed, under the lock that starts wait for."""
    owner.prepare()
    entry = {"lastCost": 3, "allowedTools": ["x" * PRIVATE_CONFIG_LIMIT_BYTES]}
    copied = json.dumps({"projects": {str(owner.project): entry}})
    (owner.private / "claude.json").write_text(copied)
    before = owner.config_file.read_bytes()
    owner.files.finish(TERMINAL)
    assert owner.config_file.read_bytes() == before


def test_one_terminal_s_spoiled_login_keeps_no_other_from_the_owner_s(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """The first error ended the whole look; it was told anew at each, too."""
    for terminal_id in (TERMINAL, SECOND):
        owner.prepare(terminal_id=terminal_id)
    (owner.private / "config/.credentials.json").mkdir()
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            login = json.dumps({"n": number})
            (owner.config / ".credentials.json").write_text(login)
            owner.files.sync_logins()
            second = owner.private.with_name(SECOND) / "config/.credentials.json"
            assert second.read_text() == login
    (told,) = [record.getMessage() for record in caplog.records]
    assert TERMINAL in told


def test_a_login_of_another_account_is_told_once_and_not_taken(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """A program inside logged the owner in as somebody else, in every session."""
    login = owner.config / ".credentials.json"
    login.write_text(make_login(1))
    owner.prepare()
    for number in (2, 3):
        other = make_login(number, accountUuid="account-2")
        (owner.private / "config/.credentials.json").write_text(other)
        owner.files.sync_logins()
    owner.files.finish(TERMINAL)
    assert login.read_text() == make_login(1)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "no refresh of yours" in told


def test_counters_that_cannot_be_merged_do_not_keep_the_folder(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It stayed with the copy of the login in it, and failed again at every start."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    owner.prepare()
    monkeypatch.setattr("sidestage.agents.claude_code.private_files.patch_config", fail)
    owner.files.finish(TERMINAL)
    assert not owner.private.exists()
    assert "No space left on device" in caplog.text
