import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.command.own_name import own_name, write_command
from sidestage.settings import Settings, read_settings


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an installation's programs; it is the one that runs."""
    folder = tmp_path / "the venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "sidestage"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings(environment={"HOME": str(tmp_path), "PATH": "/nowhere"})


def test_a_command_that_is_not_on_the_path_is_named_by_where_it_is(
    installed: Path, settings: Settings
) -> None:
    """Sentences said `sidestage projects add`, and the shell: command not found."""
    assert own_name(settings) == f"'{installed}/sidestage'"


def test_a_command_on_the_path_is_named_shortly(
    installed: Path, settings: Settings
) -> None:
    assert own_name(replace(settings, path=str(installed))) == "sidestage"


def test_another_sidestage_on_the_path_is_not_meant(
    installed: Path, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    shutil.copy(installed / "sidestage", tmp_path / "other" / "sidestage")
    other = replace(settings, path=str(tmp_path / "other"))
    assert own_name(other) == f"'{installed}/sidestage'"


def test_without_a_program_it_is_a_module(installed: Path, settings: Settings) -> None:
    (installed / "sidestage").unlink()
    assert own_name(settings) == f"'{installed}/python' -m sidestage"


def test_the_state_folder_is_named_where_the_command_would_not_find_it(
    installed: Path, settings: Settings, tmp_path: Path
) -> None:
    """With --state-dir, the command that the server named next found no server."""
    settings = replace(settings, path=str(installed))
    assert write_command(settings, "sessions") == "sidestage sessions"
    away = replace(settings, state_dir=tmp_path / "a b")
    assert write_command(away, "sessions") == (
        f"sidestage sessions --state-dir '{tmp_path}/a b'"
    )
    named = replace(away, environment={"SIDESTAGE_STATE_DIR": f"{tmp_path}/a b"})
    assert write_command(named, "sessions") == "sidestage sessions"
