"""`sidestage terminals`, and how `attach` finds the terminal that is meant."""

import json
from typing import Any

import pytest

from sidestage.command.main import run

Json = dict[str, Any]

SESSION = "outside:" + "5e" * 16
CLOSED: Json = {
    "__typename": "CloseTerminalPayload",
    "terminal": {"id": "terminal:aa11", "name": "fix the bug"},
}


def terminal(row_id: str, **more: object) -> Json:
    values: Json = {
        "id": row_id,
        "name": "fix the bug",
        "state": "RUNNING",
        "exitStatus": None,
        "endReason": None,
        "directory": "/srv/p",
        "startedAt": "2026-11-30T12:00:00Z",
        "attachedClients": 0,
        "session": None,
    }
    return values | more


def sessions(*rows: Json) -> Json:
    info = {"hasNextPage": False, "endCursor": None}
    return {"data": {"outsideSessions": {"nodes": list(rows), "pageInfo": info}}}


RUNNING = terminal("terminal:aa11", session={"id": SESSION})
ENDED = terminal("terminal:ab22", state="EXITED", exitStatus=3, session={"id": SESSION})


@pytest.fixture
def terminals(answers: dict[str, Json]) -> list[Json]:
    """The terminals that the server lists; two of one session."""
    rows = [RUNNING, ENDED]
    info = {"hasNextPage": False, "endCursor": None}
    answers["query Terminals"] = {
        "data": {"terminals": {"nodes": rows, "pageInfo": info}}
    }
    answers["mutation Close"] = {"data": {"closeTerminal": CLOSED}}
    return rows


@pytest.mark.parametrize("arguments", [["terminals"], ["terminals", "list"]])
@pytest.mark.usefixtures("terminals")
def test_terminals_are_listed_with_their_sessions(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No command listed terminals, nor closed one."""
    assert run(arguments) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("running   fix the bug  /srv/p")
    assert first.endswith("aa11  5e5e5e5e")
    assert second.startswith("exited 3")


@pytest.mark.parametrize(
    "arguments",
    [
        ["terminals", "--json"],
        ["terminals", "list", "--json"],
        ["terminals", "--json", "list"],
    ],
)
@pytest.mark.usefixtures("terminals")
def test_terminals_for_a_script_are_json(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out) == [RUNNING, ENDED]


def test_no_terminals_say_how_to_get_one(
    terminals: list[Json], capsys: pytest.CaptureFixture[str]
) -> None:
    terminals.clear()
    assert run(["terminals"]) == 0
    assert "sidestage resume ID` starts one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("terminal:aa11", "terminal:aa11"),
        ("aa", "terminal:aa11"),
        ("terminal:ab", "terminal:ab22"),
        # Of a session's terminals the one that runs.
        ("5e5e", "terminal:aa11"),
        (SESSION, "terminal:aa11"),
        ("fix the bug", "terminal:aa11"),
    ],
)
@pytest.mark.usefixtures("terminals")
def test_a_terminal_is_closed_by_its_id_or_its_sessions(
    asked: list[Json], named: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["terminals", "close", named]) == 0
    assert asked[-1]["variables"] == {"input": {"terminalId": meant}}
    assert capsys.readouterr().out == "Closed 'fix the bug'.\n"


@pytest.mark.usefixtures("terminals")
def test_a_session_in_no_terminal_is_to_be_resumed(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Sessions"] = sessions({"id": "outside:" + "ee" * 16})
    assert run(["terminals", "close", "eee"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("sidestage: That session is in no terminal.")
    assert told.endswith("sidestage resume eee\n")


@pytest.mark.usefixtures("terminals")
def test_an_unknown_id_says_whose_ids_are_meant(
    answers: dict[str, Json],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The id that an agent shows of itself was tried, and nothing said why not."""
    answers["query Sessions"] = sessions()
    assert run(["terminals", "close", "8a2e-conversation"]) == 1
    told = capsys.readouterr().err
    assert "No terminal is like '8a2e-conversation'" in told
    assert "sidestage sessions`" in told
    assert "another one" in told


def test_several_terminals_are_told_apart_by_their_ids(
    terminals: list[Json], capsys: pytest.CaptureFixture[str]
) -> None:
    terminals[1] = terminal("terminal:ab22")
    assert run(["terminals", "close", "a"]) == 1
    told = capsys.readouterr().err
    assert "terminal:aa11" in told
    assert "terminal:ab22" in told
