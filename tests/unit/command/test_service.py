"""What systemd and launchd are told. No service manager runs here."""

import os
import plistlib
import shlex
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from sidestage.command import service, service_units
from sidestage.command.failure import CommandFailed
from sidestage.command.main import run
from sidestage.command.service import files_for
from sidestage.command.service_units import (
    ServicePlan,
    host_unit,
    recorded_environment,
    server_unit,
    write_environment,
)
from sidestage.settings import Settings, read_settings
from sidestage.state import lock_state_folder

VERIFY_SECONDS: Final = 30


class FakeSystemd:
    """Takes the place of `systemctl --user`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.complaint = ""
        self.state = "active"

    def __call__(self, words: Sequence[str], **_: Any) -> Any:
        assert words[:2] == ["systemctl", "--user"]
        self.told.append(" ".join(words[2:]))
        status = 1 if self.complaint else 0
        return subprocess.CompletedProcess(words, status, self.state, self.complaint)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SIDESTAGE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SIDESTAGE_ALLOW_ROOT", "1")  # these tests may run as root
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    fake = FakeSystemd()
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


def units(home: Path) -> Path:
    return home / ".config" / "systemd" / "user"


def plan(home: Path, **environment: str) -> ServicePlan:
    return ServicePlan("/opt/side stage/python", home, environment, ("--allow-root",))


def settings_with(home: Path, **environment: str) -> Settings:
    given = {"HOME": str(home), **environment}
    return read_settings({"state_dir": str(home / "state")}, environment=given)


def test_the_units_are_written_enabled_and_started(
    home: Path, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["service", "install"]) == 0
    assert systemd.told == [
        "daemon-reload",
        "enable sidestage.service",
        "restart sidestage.service",
    ]
    server = (units(home) / "sidestage.service").read_text()
    assert f'"--state-dir" "{home / "state"}"' in server
    assert "The server runs as a service." in capsys.readouterr().out


def test_the_recorded_environment_is_for_its_owner_alone(
    home: Path, systemd: FakeSystemd
) -> None:
    """It may hold an agent's login (`ANTHROPIC_API_KEY`)."""
    run(["service", "install"])
    file = home / "state" / "service.env"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for unit in units(home).iterdir():
        assert stat.S_IMODE(unit.stat().st_mode) == 0o600


def test_a_server_started_by_hand_is_not_run_into(
    home: Path, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "state").mkdir(mode=0o700)
    with lock_state_folder(home / "state"):
        assert run(["service", "install"]) == 1
    assert systemd.told == []
    assert "Stop it first" in capsys.readouterr().err


def test_without_systemd_the_files_stay_and_the_commands_are_told(
    home: Path, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    systemd.complaint = "Failed to connect to bus"
    assert run(["service", "install"]) == 1
    said = capsys.readouterr().out
    assert "Failed to connect to bus" in said
    assert "systemctl --user enable --now sidestage.service" in said
    assert (units(home) / "sidestage.service").exists()


def test_uninstalling_removes_what_was_written_and_nothing_else(
    home: Path, systemd: FakeSystemd
) -> None:
    run(["service", "install"])
    (home / "state" / "sidestage.db").write_text("data")
    (units(home) / "other.service").write_text("of another program")
    systemd.told.clear()
    assert run(["service", "uninstall"]) == 0
    assert systemd.told == ["disable --now sidestage.service", "daemon-reload"]
    assert [path.name for path in units(home).iterdir()] == ["other.service"]
    assert (home / "state" / "sidestage.db").exists()
    assert not (home / "state" / "service.env").exists()


def test_uninstalling_does_not_stop_the_terminals(
    home: Path, systemd: FakeSystemd
) -> None:
    run(["service", "install"])
    run(["service", "uninstall"])
    assert not any("host" in words for words in systemd.told)


def test_uninstalling_nothing_says_so(
    home: Path, systemd: FakeSystemd, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["service", "uninstall"]) == 0
    assert systemd.told == []
    assert "Nothing was installed" in capsys.readouterr().out


def test_the_status_tells_what_is_missing_and_what_differs(
    home: Path,
    systemd: FakeSystemd,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["service", "status"]) == 1
    assert "missing" in capsys.readouterr().out
    run(["service", "install"])
    assert run(["service", "status"]) == 0
    assert "differs" not in capsys.readouterr().out
    monkeypatch.setenv("PATH", "/somewhere/else")
    run(["service", "status"])
    assert f"differs   {home / 'state' / 'service.env'}" in capsys.readouterr().out
    systemd.state = "failed"
    assert run(["service", "status"]) == 1


def test_installing_again_changes_nothing(home: Path, systemd: FakeSystemd) -> None:
    run(["service", "install"])
    before = {path: path.read_bytes() for path in units(home).iterdir()}
    assert run(["service", "install"]) == 0
    assert {path: path.read_bytes() for path in units(home).iterdir()} == before


def test_linger_is_looked_for(
    home: Path,
    systemd: FakeSystemd,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(service, "lingers", lambda: False)
    run(["service", "install"])
    assert "loginctl enable-linger" in capsys.readouterr().out


def test_an_agent_that_the_service_will_not_find_is_told(
    home: Path,
    systemd: FakeSystemd,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(home))
    run(["service", "install"])
    assert "the service will not find it either" in capsys.readouterr().out


def test_the_environment_that_agents_need_is_recorded(tmp_path: Path) -> None:
    settings = settings_with(
        tmp_path,
        PATH="/home/ada/.nvm/bin:/usr/bin",
        CLAUDE_CONFIG_DIR="/home/ada/.claude-work",
        SIDESTAGE_PORT="9000",
        SIDESTAGE_STATE_DIR="/elsewhere",
        SIDESTAGE_PASS_ENVIRONMENT="COMPANY_TOKEN",
        COMPANY_TOKEN="t",
        CLAUDECODE="1",
        SSH_AUTH_SOCK="/gone/at/logout",
    )
    assert recorded_environment(settings) == {
        "PATH": "/home/ada/.nvm/bin:/usr/bin",
        "CLAUDE_CONFIG_DIR": "/home/ada/.claude-work",
        "SIDESTAGE_PORT": "9000",
        "SIDESTAGE_PASS_ENVIRONMENT": "COMPANY_TOKEN",
        "COMPANY_TOKEN": "t",
    }


def test_the_hosts_unit_holds_no_login(home: Path) -> None:
    text = host_unit(plan(home, PATH="/usr/bin", ANTHROPIC_API_KEY="secret"))
    assert 'Environment="PATH=/usr/bin"' in text
    assert "secret" not in text


def test_values_are_quoted_as_systemd_and_shells_read_them() -> None:
    values = {"A": 'with "quotes"', "B": "with \\ and `this` and $HOME", "C": "100 %"}
    lines = write_environment(values).splitlines()[1:]
    assert shlex.split("\n".join(lines)) == [
        'A=with "quotes"',
        "B=with \\ and \\`this\\` and \\$HOME",  # shlex leaves those two to the shell
        "C=100 %",
    ]


@pytest.mark.parametrize("name", ["a*b", "a?b", "a[b", "a\nb", "a\\b"])
def test_a_path_that_systemd_would_misread_is_refused(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(CommandFailed):
        server_unit(plan(tmp_path / name))


def test_percent_and_dollar_stay_what_they_are(tmp_path: Path) -> None:
    text = host_unit(plan(tmp_path / "100% $HOME", PATH="/a%b/$c"))
    assert f'"--state-dir" "{tmp_path}/100%% $$HOME"' in text
    assert 'Environment="PATH=/a%%b/$c"' in text


def test_systemd_takes_the_units(
    home: Path, systemd: FakeSystemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["service", "install"])
    monkeypatch.undo()
    verify = shutil.which("systemd-analyze")
    if verify is None:
        return  # nothing to ask
    done = subprocess.run(
        [verify, "verify", "--user", *map(str, sorted(units(home).iterdir()))],
        env={"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=VERIFY_SECONDS,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "sidestage" in line]
    assert said == []


def test_macos_gets_launch_agents(home: Path) -> None:
    texts = files_for(settings_with(home, PATH="/usr/bin"), platform="darwin").texts
    folder = home / "Library" / "LaunchAgents"
    server = plistlib.loads(texts[folder / "sidestage.server.plist"])
    assert server["ProgramArguments"][1:5] == ["-P", "-m", "sidestage", "serve"]
    assert server["EnvironmentVariables"]["PATH"] == "/usr/bin"
    host = plistlib.loads(texts[folder / "sidestage.host.plist"])
    assert host["ProgramArguments"][1:4] == ["-P", "-m", "terminal_host.host"]
    assert len(texts) == 2


def test_an_ordinary_user_is_wanted(
    home: Path, systemd: FakeSystemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIDESTAGE_ALLOW_ROOT")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert run(["service", "install"]) == 1
    assert systemd.told == []


def test_both_services_end_before_systemd_kills(home: Path) -> None:
    for text in (server_unit(plan(home)), host_unit(plan(home))):
        assert f"TimeoutStopSec={service_units.STOP_SECONDS}" in text
