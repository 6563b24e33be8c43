import getpass
import time
from pathlib import Path

import pytest

from api import service_checks
from api.checks import list_findings
from api.findings import Finding, Verdict
from api.service_checks import check_clock, check_service, judge_resume, lingers
from sidestage.settings import Settings, read_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The owner has an agent; `bin` is all the PATH there is."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    given = {"HOME": str(tmp_path), "PATH": str(program.parent)}
    return read_settings({"state_dir": str(tmp_path / "state")}, environment=given)


def in_cgroup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    file = tmp_path / "cgroup"
    file.write_text(text)
    monkeypatch.setattr(service_checks, "CGROUP_FILE", file)


def test_linger_is_looked_for(tmp_path: Path) -> None:
    assert not lingers(tmp_path)
    (tmp_path / getpass.getuser()).touch()
    assert lingers(tmp_path)


def test_a_server_started_by_hand_is_told_how_to_become_a_service(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_cgroup(monkeypatch, tmp_path, "0::/user.slice/session-1.scope\n")
    finding = check_service(settings)
    assert finding.verdict is Verdict.OK
    assert "service install" in finding.sentence


@pytest.mark.parametrize(
    ("lingering", "verdict"), [(False, Verdict.WARNING), (True, Verdict.OK)]
)
def test_a_service_that_ends_with_the_login_is_told(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    lingering: bool,
    verdict: Verdict,
) -> None:
    in_cgroup(
        monkeypatch, tmp_path, "0::/user@1000.service/app.slice/sidestage.service"
    )
    monkeypatch.setattr(service_checks, "lingers", lambda: lingering)
    finding = check_service(settings)
    assert finding.verdict is verdict
    assert ("enable-linger" in finding.sentence) == (not lingering)


@pytest.mark.parametrize(
    ("now", "state", "verdict"),
    [
        (time.time(), 0, Verdict.OK),
        (time.time(), 5, Verdict.WARNING),
        (86_400.0, 0, Verdict.PROBLEM),
    ],
    ids=["right", "unsynchronised", "at the epoch"],
)
def test_a_clock_that_cannot_be_right_is_told(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    now: float,
    state: int,
    verdict: Verdict,
) -> None:
    monkeypatch.setattr(time, "time", lambda: now)
    monkeypatch.setattr(service_checks, "_clock_state", lambda: state)
    assert check_clock(settings).verdict is verdict


def test_the_kernel_is_asked_for_its_clock() -> None:
    assert 0 <= service_checks._clock_state() <= 5


@pytest.mark.parametrize("name", service_checks.NEEDED_TO_RESUME)
def test_what_keeps_a_resume_from_working_is_named(
    settings: Settings, name: str
) -> None:
    well = Finding("watches", Verdict.PROBLEM, "not needed for it")
    assert judge_resume(settings, [well]).verdict is Verdict.OK
    bad = Finding(name, Verdict.PROBLEM, "broken")
    finding = judge_resume(settings, [well, bad])
    assert finding.verdict is Verdict.WARNING
    assert name in finding.sentence


def test_without_the_agent_no_session_can_be_resumed(settings: Settings) -> None:
    """The service's PATH lacked what a version manager had installed."""
    (Path(settings.path) / "claude").unlink()
    assert judge_resume(settings, []).verdict is Verdict.WARNING


def test_the_judgement_comes_last(settings: Settings) -> None:
    assert list_findings(settings)[-1].name == "resume"
