import os
import stat
from pathlib import Path

import pytest

from sidestage.errors import StateFolderUnsafe
from sidestage.state import (
    check_socket_path,
    lock_state_folder,
    prepare_state_folder,
    read_machine_secret,
)


def test_a_new_state_folder_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "state"
    prepare_state_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_open_state_folder_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    prepare_state_folder(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_file_is_no_state_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StateFolderUnsafe):
        prepare_state_folder(file)


def test_the_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(StateFolderUnsafe, match="belongs to another user"):
        prepare_state_folder(tmp_path)


def test_a_socket_path_may_have_107_bytes(tmp_path: Path) -> None:
    check_socket_path(Path("/" + "x" * 106))
    with pytest.raises(StateFolderUnsafe, match="shorter state folder"):
        check_socket_path(Path("/" + "x" * 107))
    with pytest.raises(StateFolderUnsafe):
        check_socket_path(Path("/" + "漢" * 36))


def test_the_machine_secret_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    secret = read_machine_secret(tmp_path)
    assert len(secret) == 32
    assert read_machine_secret(tmp_path) == secret
    file = tmp_path / "machine-secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["machine-secret"]


def test_a_damaged_machine_secret_is_told(tmp_path: Path) -> None:
    (tmp_path / "machine-secret").write_bytes(b"short")
    with pytest.raises(StateFolderUnsafe, match="damaged"):
        read_machine_secret(tmp_path)


def test_one_server_has_the_folder(tmp_path: Path) -> None:
    with (
        lock_state_folder(tmp_path),
        pytest.raises(StateFolderUnsafe, match="Another Sidestage server"),
        lock_state_folder(tmp_path),
    ):
        pass
    with lock_state_folder(tmp_path):
        pass
