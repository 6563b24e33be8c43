"""What `sidestage serve` says: its banner, and why it cannot start."""

from dataclasses import replace
from pathlib import Path

import pytest

from api.server import Ready
from sidestage.command.main import run
from sidestage.command.serve import announce
from sidestage.settings import read_settings


def banner(
    capsys: pytest.CaptureFixture[str], *, sessions: int, projects: int, away: Path
) -> list[str]:
    settings = replace(read_settings(), state_dir=away)
    announce(Ready("http://127.0.0.1:1", settings, sessions, projects, as_root=False))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("sessions", "projects", "steps"),
    [
        (0, 0, ["start an agent in any terminal", "projects add FOLDER"]),
        (0, 1, ["start an agent in any terminal", "sessions"]),
        (3, 0, ["projects add FOLDER"]),
        (3, 1, ["resume ID"]),
    ],
)
def test_the_banner_says_what_comes_next(
    capsys: pytest.CaptureFixture[str],
    state_dir: Path,
    sessions: int,
    projects: int,
    steps: list[str],
) -> None:
    """With no session yet, it sent people to register a folder for none."""
    lines = banner(capsys, sessions=sessions, projects=projects, away=state_dir)
    assert lines[1] == "http://127.0.0.1:1"
    for line, words in zip(lines[3:-1], steps, strict=True):
        assert words in line
        assert "--state-dir" not in line


def test_the_banners_commands_name_a_state_folder_of_ones_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """They found no server, or another one."""
    away = tmp_path / "away"
    lines = banner(capsys, sessions=1, projects=0, away=away)
    assert lines[3].count(f" --state-dir {away}`") == 2


def test_a_state_folder_that_may_not_be_read_is_named_with_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serve --state-dir /srv/x` said "[Errno 13] Permission denied"."""

    def refuse(path: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    assert run(["serve", "--state-dir", "/srv/x"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("sidestage: The state folder /srv/x")
    assert "--state-dir" in told
    assert "Errno" not in told


def test_an_address_beyond_loopback_names_the_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["serve", "--host", "0.0.0.0"]) == 1
    assert "--insecure-bind" in capsys.readouterr().err
