from pathlib import Path

import pytest

from sidestage.errors import SettingsInvalid
from sidestage.settings import SETTABLE, read_settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin"} | more


def test_the_defaults_are_loopback_and_the_state_folder_of_the_user(
    tmp_path: Path,
) -> None:
    settings = read_settings(environment=environment(tmp_path))
    assert settings.host == "127.0.0.1"
    assert settings.sandbox is True
    assert settings.state_dir == tmp_path / ".local" / "state" / "sidestage"
    assert settings.claude_dirs == (tmp_path / ".claude",)


def test_a_flag_beats_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "settings.toml").write_text('port = 1\nlog_level = "debug"\n')
    given = environment(
        tmp_path,
        SIDESTAGE_STATE_DIR=str(state),
        SIDESTAGE_PORT="2",
        SIDESTAGE_SANDBOX="off",
    )
    assert read_settings({"port": 3, "host": None}, environment=given).port == 3
    settings = read_settings(environment=given)
    assert settings.port == 2
    assert settings.log_level == "debug"
    assert settings.sandbox is False


def test_lists_come_from_the_environment_with_commas(tmp_path: Path) -> None:
    settings = read_settings(
        environment=environment(
            tmp_path, SIDESTAGE_CLAUDE_CONFIG_DIRS="~/.claude, /srv/c , ~/.claude"
        )
    )
    assert settings.claude_dirs == (tmp_path / ".claude", Path("/srv/c"))


def test_the_clis_own_variable_names_its_folder(tmp_path: Path) -> None:
    settings = read_settings(
        environment=environment(tmp_path, CLAUDE_CONFIG_DIR="/srv/claude")
    )
    assert settings.claude_dirs == (Path("/srv/claude"),)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PORT", "70000", "port must be from 0 to 65535"),
        ("PORT", "x", "port must be a whole number"),
        ("SANDBOX", "maybe", "sandbox must be true or false"),
        ("LOG_LEVEL", "loud", "log_level must be one of"),
        ("LOG_FORMAT", "xml", "log_format must be one of"),
        ("TERMINALS_LIMIT", "0", "terminals_limit must be from 1"),
        ("RECORDS_LIMIT", "0", "records_limit must be from 1"),
        ("RECORD_LIMIT_BYTES", "1000", "record_limit_bytes must be from 65536"),
    ],
)
def test_a_wrong_value_is_told_by_its_name(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    given = environment(tmp_path, **{f"SIDESTAGE_{name}": value})
    with pytest.raises(SettingsInvalid, match=sentence):
        read_settings(environment=given)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("port = 'x'", "port must be a whole number"),
        ("sandbox = 1", "sandbox must be true or false"),
        ("public_urls = 'x'", "public_urls must be a list"),
        ("public_urls = [1]", "public_urls must be a list of texts"),
        ("porte = 1", "no setting named 'porte'"),
        ("port =", "cannot be read"),
        ("state_dir = '/x'", "no setting named 'state_dir'"),
    ],
)
def test_a_wrong_file_is_told_by_its_name(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "settings.toml").write_text(text)
    with pytest.raises(SettingsInvalid, match=sentence):
        read_settings({"state_dir": str(tmp_path)}, environment=environment(tmp_path))


def test_the_document_lists_every_setting_with_its_default() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    documented = {cells[1].strip().strip("`"): cells for cells in rows}
    assert set(documented) == {field.name for field in SETTABLE}
    for field in SETTABLE:
        cells = documented[field.name]
        default = field.default
        shown = (
            str(default).lower()
            if isinstance(default, bool)
            else "empty"
            if default == ()
            else str(default)
        )
        assert cells[2].strip().strip("`") == shown
        assert cells[3].strip() == field.metadata["about"]
