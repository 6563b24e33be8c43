"""`sidestage hooks` and `sidestage adoption`, over a stand-in for the server."""

import json
from pathlib import Path
from typing import Any

import pytest

from sidestage.command.main import run

Json = dict[str, Any]
ROW: Json = {
    "settingsFile": "/home/dev/.claude/settings.json",
    "state": "INSTALLED",
    "note": None,
}


def policy(*excluded: str, enabled: bool = True) -> Json:
    return {"enabled": enabled, "excluded": list(excluded)}


def answer(**data: Any) -> Json:
    return {"data": data}


def changed(*excluded: str, enabled: bool = True) -> Json:
    payload = {
        "__typename": "SetAdoptionPolicyPayload",
        "policy": policy(*excluded, enabled=enabled),
    }
    return answer(setAdoptionPolicy=payload)


@pytest.mark.parametrize(
    ("state", "note", "told"),
    [
        ("INSTALLED", None, "installed"),
        ("ABSENT", None, "not installed"),
        ("OUTDATED", "Again.", "outdated (Again.)"),
        ("LATER", None, "LATER"),
    ],
)
def test_the_status_names_each_file(
    answers: dict[str, Json],
    capsys: pytest.CaptureFixture[str],
    state: str,
    note: str | None,
    told: str,
) -> None:
    answers["{ hooks"] = answer(hooks=[ROW | {"state": state, "note": note}])
    assert run(["hooks", "status"]) == 0
    assert capsys.readouterr().out == f"{ROW['settingsFile']}: {told}\n"


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_a_change_says_how_it_is_now(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str], action: str
) -> None:
    name = f"{action}Hooks"
    typename = f"{action.capitalize()}HooksPayload"
    answers[f"mutation {{ {name}"] = answer(
        **{name: {"__typename": typename, "hooks": [ROW]}}
    )
    assert run(["hooks", action, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [ROW]


def test_a_refusal_is_said(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    error = {
        "__typename": "HooksUnreadable",
        "code": "HOOKS_UNREADABLE",
        "message": "/f, line 3: no",
    }
    answers["mutation { installHooks"] = answer(installHooks=error)
    assert run(["hooks", "install"]) == 1
    assert "line 3" in capsys.readouterr().err


def test_a_folder_is_excluded_beside_the_others(
    answers: dict[str, Json],
    asked: list[Json],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    answers["{ adoptionPolicy"] = answer(adoptionPolicy=policy("/a"))
    answers["mutation Set"] = changed("/a", str(tmp_path))
    assert run(["adoption", "exclude", str(tmp_path)]) == 0
    assert asked[-1]["variables"] == {"input": {"excluded": ["/a", str(tmp_path)]}}
    assert f"  {tmp_path}\n" in capsys.readouterr().out


def test_a_folder_is_included_again_also_by_a_link_to_it(
    answers: dict[str, Json], asked: list[Json], tmp_path: Path
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    answers["{ adoptionPolicy"] = answer(adoptionPolicy=policy("/a", str(real)))
    answers["mutation Set"] = changed("/a")
    assert run(["adoption", "include", str(tmp_path / "link")]) == 0
    assert asked[-1]["variables"] == {"input": {"excluded": ["/a"]}}


def test_what_is_not_excluded_cannot_be_included(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["{ adoptionPolicy"] = answer(adoptionPolicy=policy())
    assert run(["adoption", "include", "/nowhere"]) == 1
    assert "/nowhere is not excluded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("action", "enabled", "told"),
    [
        ("on", True, "On: every session may ask from afar.\n"),
        ("off", False, "Off: no session asks from afar.\n"),
    ],
)
def test_it_is_switched_on_and_off(
    answers: dict[str, Json],
    asked: list[Json],
    capsys: pytest.CaptureFixture[str],
    action: str,
    enabled: bool,
    told: str,
) -> None:
    answers["mutation Set"] = changed(enabled=enabled)
    assert run(["adoption", action]) == 0
    assert asked[-1]["variables"] == {"input": {"enabled": enabled}}
    assert capsys.readouterr().out == told


def test_the_policy_for_a_script_is_json(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["{ adoptionPolicy"] = answer(adoptionPolicy=policy("/a"))
    assert run(["adoption", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == policy("/a")
