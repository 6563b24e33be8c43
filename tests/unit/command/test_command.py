"""What the command line says, over a stand-in for the server's answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from sidestage.command import client
from sidestage.command.main import make_parser, run

Json = dict[str, Any]
Answer = Callable[[Json], Json]

ROW: Json = {
    "id": "outside:" + "a1" * 16,
    "name": "fix the bug",
    "state": "ASKING",
    "agent": "CLAUDE_CODE",
    "directory": "/srv/p",
    "gitBranch": None,
    "model": None,
    "lastActivityAt": "2026-11-30T12:00:00Z",
    "waitingFor": {"kind": "PERMISSION", "label": "permission prompt"},
    "resume": None,
    "terminal": None,
}
OTHER: Json = ROW | {
    "id": "outside:" + "a2" * 16,
    "name": "漢字 \x1b[31m",
    "state": "IDLE",
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Json]:
    """Answers by the beginning of the operation; the transport is httpx's own."""
    given: dict[str, Json] = {}

    def handle(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        text = body.get("query", request.url.path)
        for beginning, answer in given.items():
            if beginning in text:
                return httpx.Response(answer.get("status", 200), json=answer)
        return httpx.Response(404, json={"message": "nothing prepared"})

    def transport(**_: object) -> httpx.MockTransport:
        return httpx.MockTransport(handle)

    monkeypatch.setattr(httpx, "HTTPTransport", transport)
    monkeypatch.setattr(client, "_check_listening", lambda path: None)
    return given


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIDESTAGE_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def page(*rows: Json) -> Json:
    info = {"hasNextPage": False, "endCursor": None}
    return {"data": {"outsideSessions": {"nodes": list(rows), "pageInfo": info}}}


def test_every_subcommand_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for name in (
        "serve",
        "sessions",
        "resume",
        "attach",
        "projects",
        "token",
        "doctor",
    ):
        assert f"\n    {name}" in told


def test_sessions_are_a_table_without_colours_off_a_terminal(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Sessions"] = page(ROW, OTHER)
    assert run(["sessions"]) == 0
    told = capsys.readouterr().out
    assert "asking permission" in told
    assert "a1a1a1a1" in told
    assert "漢字" in told
    assert "\x1b" not in told


def test_sessions_for_a_script_are_json(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Sessions"] = page(ROW)
    assert run(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [ROW]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [([], "No sessions yet"), (["--state", "idle"], "No session is like that")],
)
def test_an_empty_list_says_what_to_do(
    answers: dict[str, Json],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    answers["query Sessions"] = page()
    assert run(["sessions", *arguments]) == 0
    assert sentence in capsys.readouterr().out


def test_without_a_server_the_command_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["sessions"]) == 1
    told = capsys.readouterr().err
    assert "No server answers on" in told
    assert "sidestage serve" in told


def test_a_typed_error_is_a_sentence_and_a_status(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {"__typename": "OutsideSessionLive", "code": "X", "message": "It runs."}
    answers["mutation Resume"] = {"data": {"resumeOutsideSession": refused}}
    assert run(["resume", ROW["id"], "--detached"]) == 1
    assert capsys.readouterr().err == "sidestage: It runs.\n"


def test_a_top_level_error_is_a_sentence_and_a_status(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Sessions"] = {"errors": [{"message": "Too much."}], "status": 429}
    assert run(["sessions"]) == 1
    assert capsys.readouterr().err == "sidestage: Too much.\n"


def test_a_session_may_be_named_by_the_beginning_of_its_id(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Sessions"] = page(ROW, OTHER)
    terminal = {"id": "terminal:1", "name": "fix the bug (resumed)"}
    payload = {"__typename": "ResumeOutsideSessionPayload", "terminal": terminal}
    answers["mutation Resume"] = {"data": {"resumeOutsideSession": payload}}
    assert run(["resume", "a1", "--detached"]) == 0
    assert "sidestage attach terminal:1" in capsys.readouterr().out
    assert run(["resume", "a", "--detached"]) == 1
    assert "2 sessions' ids begin with outside:a" in capsys.readouterr().err
    assert run(["resume", "ffff", "--detached"]) == 1
    assert "No session's id begins" in capsys.readouterr().err


def test_attaching_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attach"]) == 1
    assert "This needs a terminal" in capsys.readouterr().err


def test_a_new_token_is_printed_alone(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["/control/tokens"] = {"token": "sst_x"}
    assert run(["token", "create", "wall"]) == 0
    assert capsys.readouterr().out == "sst_x\n"


def test_the_admin_tokens_place_is_told_and_never_the_token(
    state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state_dir / "admin.token").write_text("sst_secret")
    assert run(["token", "path"]) == 0
    assert capsys.readouterr().out == f"{state_dir / 'admin.token'}\n"


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    assert "type Query" in capsys.readouterr().out


def test_doctor_finds_a_missing_server_and_says_so_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(["doctor", "--json"])
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["server"]["verdict"] == "warning"
    assert "sidestage serve" in found["server"]["sentence"]
    assert found["state folder"]["verdict"] == "ok"
