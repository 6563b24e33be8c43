"""Rewriting `.claude.json` beside running CLIs."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents.claude_code import config_file
from sidestage.agents.claude_code.config_file import (
    parse_config,
    patch_config,
    read_config,
    replace_file,
)
from tests.fakes.json_values import VALUES


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / ".claude.json"
    path.write_text('{"a": 1}')
    path.chmod(0o600)
    return path


def set_b(values: dict[str, Any]) -> bool:
    values["b"] = "ü"
    return True


def test_a_patch_is_written_with_the_file_s_mode(config: Path) -> None:
    patch_config(config, set_b)
    assert json.loads(config.read_text()) == {"a": 1, "b": "ü"}
    assert config.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in config.parent.iterdir()] == [".claude.json"]


def test_half_a_surrogate_pair_survives(config: Path) -> None:
    """Prompts cut by the CLI end in one; written raw, the file was no UTF-8."""
    config.write_text('{"a": "\\ud83d", "ü": 1}')
    patch_config(config, set_b)
    assert json.loads(config.read_text()) == {"a": "\ud83d", "ü": 1, "b": "ü"}


def test_a_patch_that_changes_nothing_does_not_write(config: Path) -> None:
    before = config.stat()
    patch_config(config, lambda _: False)
    assert config.stat() == before


def test_a_link_stays_a_link_and_its_target_is_written(config: Path) -> None:
    real = config.parent / "dotfiles"
    real.mkdir()
    config.rename(real / "claude.json")
    config.symlink_to(real / "claude.json")
    patch_config(config, set_b)
    assert config.is_symlink()
    assert "b" in read_config(real / "claude.json")


def test_a_change_made_under_the_lock_is_read_before_writing(config: Path) -> None:
    """An outside CLI holds its lock while it writes; what it wrote was lost."""
    lock = config.with_name(".claude.json.lock")
    lock.mkdir()
    patching = threading.Thread(target=patch_config, args=(config, set_b))
    patching.start()
    replace_file(config, b'{"a": 2}', mode=0o600)
    lock.rmdir()
    patching.join()
    assert read_config(config)["a"] == 2
    assert "b" in config.read_text()
    assert not lock.exists()


def test_a_lock_of_a_process_that_died_does_not_stop_it(config: Path) -> None:
    lock = config.with_name(".claude.json.lock")
    lock.mkdir()
    os.utime(lock, (1, 1))
    patch_config(config, set_b)
    assert "b" in config.read_text()
    assert lock.exists()  # its owner may yet come back for it


def test_patience_with_a_lock_ends(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_file, "LOCK_PATIENCE_SECONDS", 0.0)
    config.with_name(".claude.json.lock").mkdir()
    patch_config(config, set_b)
    assert "b" in config.read_text()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 99999])
def test_what_cannot_be_read_is_left_alone(config: Path, content: bytes) -> None:
    config.write_bytes(content)
    assert parse_config(content) == {}
    patch_config(config, set_b)
    assert config.read_bytes() == content


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    patch_config(tmp_path / ".claude.json", set_b)
    assert list(tmp_path.iterdir()) == []


def test_a_giant_file_is_no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_file, "CONFIG_LIMIT_BYTES", 10)
    assert parse_config(b'{"a":  12}') == {"a": 12}
    assert parse_config(b'{"a":   12}') == {}


def test_a_failed_replacement_leaves_no_file_behind(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "there", b"x", mode=0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@given(st.one_of(st.binary(), VALUES.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_an_object_or_nothing(data: bytes) -> None:
    config = parse_config(data)
    assert isinstance(config, dict)
    assert config == {} or config == json.loads(data)


@given(st.dictionaries(st.text(), VALUES), st.integers(0, 400))
def test_a_torn_or_doubled_configuration_is_none(
    config: dict[str, Any], cut: int
) -> None:
    data = json.dumps(config).encode()
    assert parse_config(data + data) == {}
    assert parse_config(data[:cut]) == {} or cut >= len(data)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_no_depth_upsets_the_parser(opening: bytes) -> None:
    assert parse_config(opening * 100_000) == {}
