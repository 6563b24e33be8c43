"""What the command line says, over a stand-in for the server's answers."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from sidestage.command.main import make_parser, run

Json = dict[str, Any]

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
        "terminals",
        "projects",
        "hooks",
        "adoption",
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


def refuse(answers: dict[str, Json], typename: str, **more: object) -> None:
    refused = {"__typename": typename, "code": "X", "message": "No."} | more
    answers["mutation Resume"] = {"data": {"resumeOutsideSession": refused}}


def test_resuming_what_is_open_says_how_to_attach(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal left one to look for the terminal in which it is open."""
    refuse(answers, "OutsideSessionResumed", openTerminal={"id": "terminal:7"})
    assert run(["resume", ROW["id"], "--detached"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("sidestage: No. Attach with: ")
    assert told.endswith("sidestage attach terminal:7\n")


def test_resuming_outside_of_a_project_says_how_to_register_the_folder(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal named neither the folder nor the command."""
    refuse(answers, "OutsideResumeUnavailable")
    node: Json = {"directory": "/srv/a b", "project": None}
    answers["query Folder"] = {"data": {"node": node}}
    assert run(["resume", ROW["id"], "--detached"]) == 1
    told = capsys.readouterr().err
    assert "Its folder is /srv/a b." in told
    assert told.endswith("sidestage projects add '/srv/a b'\n")
    node["project"] = {"id": "project:1"}
    assert run(["resume", ROW["id"], "--detached"]) == 1
    assert capsys.readouterr().err == "sidestage: No.\n"


def test_resuming_without_a_terminal_names_the_way_that_needs_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["resume", "a1"]) == 1
    assert "--detached" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["resume", "attach"])
def test_the_help_says_how_to_detach(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was only said after attaching, above what the program then drew."""
    with pytest.raises(SystemExit):
        run([name, "--help"])
    assert "Ctrl-] and then d to detach" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["sessions", "--bogus"], "usage: sidestage sessions"),
        (["projects", "list", "--bogus"], "usage: sidestage projects list"),
        (["--bogus", "sessions"], "usage: sidestage [-h]"),
    ],
)
def test_a_wrong_option_shows_the_usage_of_its_subcommand(
    arguments: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The usage of the whole command came, which tells no option."""
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(usage)
    assert "unrecognized arguments: --bogus" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sessions", "-n", "-1"], "--rows: '-1' is not a whole number"),
        (["token", "create", "x", "--hours", "0"], "--hours: '0' is not a whole"),
        (["token", "create", "x", "--hours", "0.5"], "--hours: '0.5' is not a whole"),
    ],
)
def test_a_number_that_means_nothing_is_refused_by_its_options_name(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hours were refused as `lifetimeSeconds`; -1 rows were all rows."""
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def projects(*names: str) -> Json:
    rows = [
        {
            "id": f"project:{index}{index}aa",
            "name": name,
            "path": f"/srv/{index}/{name}",
            "readOnly": False,
            "templates": [],
        }
        for index, name in enumerate(names)
    ]
    info = {"hasNextPage": False, "endCursor": None}
    return {"data": {"projects": {"nodes": rows, "pageInfo": info}}}


def test_projects_are_listed_without_ids(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids that nobody types were cut, and took the folders' place."""
    answers["query Projects"] = projects("app")
    assert run(["projects", "list"]) == 0
    title, line = capsys.readouterr().out.splitlines()
    assert title.split() == ["NAME", "FOLDER", "ACCESS"]
    assert line.split() == ["app", "/srv/0/app", "read-write"]


@pytest.mark.parametrize("named", ["/srv/1/api", "api", "project:11aa", "11", "11aa"])
def test_a_project_is_removed_by_folder_name_or_id(
    answers: dict[str, Json], asked: list[Json], named: str
) -> None:
    """Only a whole id, which no list showed whole, or the folder was understood."""
    answers["query Projects"] = projects("app", "api")
    gone = {"__typename": "RemoveProjectPayload", "project": {"id": "", "path": "/x"}}
    answers["mutation Remove"] = {"data": {"removeProject": gone}}
    assert run(["projects", "remove", named]) == 0
    assert asked[-1]["variables"] == {"input": {"projectId": "project:11aa"}}


def test_a_name_of_two_projects_is_not_enough(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["query Projects"] = projects("app", "app")
    assert run(["projects", "remove", "app"]) == 1
    assert "2 projects are like 'app'" in capsys.readouterr().err
    assert run(["projects", "remove", "else"]) == 1
    told = capsys.readouterr().err
    assert "There is no project 'else'" in told
    assert "sidestage projects list`" in told


def test_a_folder_that_is_refused_is_named(
    answers: dict[str, Json],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`projects add nothere` said "There is no such folder", and not where."""
    monkeypatch.chdir(tmp_path)
    refused = {"__typename": "ProjectFolderMissing", "code": "X", "message": "No."}
    answers["mutation Add"] = {"data": {"registerProject": refused}}
    assert run(["projects", "add", "nothere"]) == 1
    assert capsys.readouterr().err == f"sidestage: {tmp_path}/nothere: No.\n"


TOKENS: Final = (
    {
        "id": "00112233445566aa",
        "name": "wall",
        "scopes": ["READ", "VIEW"],
        "lastUsedAt": "2026-11-30T12:34:56.789012+00:00",
        "expiresAt": None,
    },
    {
        "id": "99112233445566aa",
        "name": "a name that is long enough to make others narrow",
        "scopes": ["ADMIN", "READ", "TERMINAL", "VIEW"],
        "lastUsedAt": None,
        "expiresAt": None,
    },
)


def test_tokens_are_listed_on_a_line_each(
    answers: dict[str, Json],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scopes were wrapped, and times had microseconds and an offset."""
    monkeypatch.setenv("COLUMNS", "80")
    answers["/control/tokens"] = {"tokens": list(TOKENS)}
    assert run(["token", "list"]) == 0
    _, wall, other = capsys.readouterr().out.splitlines()
    used = datetime(2026, 11, 30, 12, 34, tzinfo=UTC).astimezone()
    assert f"READ VIEW  {used:%Y-%m-%d %H:%M}".split() == wall.split()[1:5]
    assert "ADMIN READ TERMINAL VIEW" in other
    assert other.endswith("99112233445566aa")


@pytest.mark.parametrize("named", ["wall", "00112233445566aa", "0011"])
def test_a_token_is_revoked_by_name_or_id(
    answers: dict[str, Json], asked: list[Json], named: str
) -> None:
    """`token revoke wall` said that there is no token with that id."""
    answers["/control/tokens/revoke"] = {"revoked": True}
    answers["/control/tokens"] = {"tokens": list(TOKENS)}
    assert run(["token", "revoke", named]) == 0
    assert asked[-1] == {"id": "00112233445566aa"}


def test_revoking_an_unknown_token_names_the_list(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    answers["/control/tokens"] = {"tokens": list(TOKENS)}
    assert run(["token", "revoke", "door"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("sidestage: There is no token 'door'.")
    assert "sidestage token list`" in told


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


def test_doctor_tells_what_a_running_server_sees(
    answers: dict[str, Json], capsys: pytest.CaptureFixture[str]
) -> None:
    """It checked its own shell: all was well, and the server had no agent to start."""
    seen = {"name": "claude", "verdict": "problem", "sentence": "Not on its PATH."}
    answers["/control/checks"] = {"checks": [seen]}
    health = {"status": "DEGRADED", "notes": ["One.", "Two."]}
    answers["health"] = {"data": {"server": {"health": health}}}
    assert run(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "This machine, as the server sees it:",
        "problem  claude: Not on its PATH.",
        "warning  server: One. Two.",
    ]
