import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from api import checks
from api.checks import list_findings
from api.findings import Finding, Verdict
from sidestage.settings import Settings, read_settings
from terminal_host.host.sandbox import BubblewrapConfiner
from terminal_host.host.sandbox_probe import SandboxProbe


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    given = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    return read_settings({"state_dir": str(tmp_path / "state")}, environment=given)


def put_claude(settings: Settings, script: str) -> Path:
    program = Path(settings.path) / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def found(settings: Settings, name: str) -> Finding:
    [finding] = [f for f in list_findings(settings) if f.name == name]
    return finding


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_state_folder_that_is_not_there_yet_is_fine(settings: Settings) -> None:
    assert found(settings, "state folder").verdict is Verdict.OK


def test_a_state_folder_that_others_can_read_is_told(settings: Settings) -> None:
    settings.state_dir.mkdir(mode=0o755)
    finding = found(settings, "state folder")
    assert finding.verdict is Verdict.WARNING
    assert "open to others" in finding.sentence


def test_a_full_disk_is_a_problem(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.state_dir.mkdir(mode=0o700)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 1 << 20))
    finding = found(settings, "state folder")
    assert finding.verdict is Verdict.PROBLEM
    assert "Only 1 MiB are free" in finding.sentence


def test_a_path_too_long_for_a_socket_is_a_problem(settings: Settings) -> None:
    deep = replace(settings, state_dir=settings.state_dir / ("x" * 90))
    assert found(deep, "state folder").verdict is Verdict.PROBLEM


@pytest.mark.parametrize(
    ("probe", "verdict", "words"),
    [
        (SandboxProbe("Install bubblewrap.", None, 7), Verdict.PROBLEM, "Install"),
        (SandboxProbe(None, "0.8.0", 7), Verdict.OK, "bubblewrap 0.8.0 works"),
        (SandboxProbe(None, "0.8.0", 0), Verdict.WARNING, "signals"),
    ],
)
def test_the_sandbox_is_tried_out(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    probe: SandboxProbe,
    verdict: Verdict,
    words: str,
) -> None:
    monkeypatch.setattr(BubblewrapConfiner, "probe", lambda _: probe)
    finding = found(settings, "sandbox")
    assert finding.verdict is verdict
    assert words in finding.sentence


def test_a_sandbox_that_is_switched_off_is_told(settings: Settings) -> None:
    finding = found(replace(settings, sandbox=False), "sandbox")
    assert finding.verdict is Verdict.WARNING


def test_a_missing_agent_is_told(settings: Settings) -> None:
    finding = found(settings, "claude")
    assert finding.verdict is Verdict.WARNING
    assert "not on the PATH" in finding.sentence


@pytest.mark.parametrize(
    ("script", "verdict", "words"),
    [
        (f"echo '{checks.TESTED_CLAUDE} (Claude Code)'", Verdict.OK, "is version"),
        ("echo '9.9.9 (Claude Code)'", Verdict.WARNING, "newer than"),
        ("echo '2.1.99 (Claude Code)'", Verdict.OK, "The tests ran with"),
        ("exit 3", Verdict.PROBLEM, "does not say its version"),
        ("exit 0", Verdict.PROBLEM, "does not say its version"),
    ],
)
def test_an_agents_version_is_compared(
    settings: Settings, script: str, verdict: Verdict, words: str
) -> None:
    put_claude(settings, script)
    finding = found(settings, "claude")
    assert finding.verdict is verdict
    assert words in finding.sentence


def test_where_sessions_are_looked_for_is_told(settings: Settings) -> None:
    assert found(settings, "sessions").verdict is Verdict.WARNING
    settings.claude_dirs[0].mkdir()
    finding = found(settings, "sessions")
    assert finding.verdict is Verdict.OK
    assert str(settings.claude_dirs[0]) in finding.sentence


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("8191\n", Verdict.WARNING), ("8192\n", Verdict.OK), ("?", Verdict.OK)],
)
def test_few_watches_are_told_with_the_command_to_raise_them(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str,
    verdict: Verdict,
) -> None:
    file = tmp_path / "max_user_watches"
    file.write_text(text)
    monkeypatch.setattr(checks, "WATCHES_FILE", file)
    finding = found(settings, "watches")
    assert finding.verdict is verdict
    assert (verdict is Verdict.WARNING) == ("sudo sysctl" in finding.sentence)
