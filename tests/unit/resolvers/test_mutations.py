"""What can be done, over the real HTTP application and parts in memory."""

from typing import Any

import pytest

from sidestage import errors
from tests.fakes.parts import make_world
from tests.fakes.tokens import READER
from tests.fakes.values import session_id

RESUME = """mutation($input: ResumeOutsideSessionInput!) { resumeOutsideSession(
    input: $input) { __typename
    ... on ResumeOutsideSessionPayload { terminal { id cols } ticket { secret mode
        expiresAt socketPath } }
    ... on OutsideSessionResumed { openTerminal { id } }
    ... on UserError { code message } } }"""
START = """mutation($input: StartTerminalInput!) { startTerminal(input: $input) {
    __typename ... on StartTerminalPayload { terminal { id } ticket { secret } }
    ... on UserError { code message } } }"""

NO_ID = "That is not an outside session id."
NO_SIZE = "cols and rows must be whole numbers from 1 to 500"


def wish(**changes: Any) -> dict[str, Any]:
    return {"input": {"sessionId": session_id(3), "cols": 80, "rows": 24, **changes}}


async def test_an_ended_session_is_resumed_in_a_terminal_with_a_ticket() -> None:
    async with make_world().client() as client:
        result = (await client.data(RESUME, wish()))["resumeOutsideSession"]
    assert result["terminal"] == {"id": "terminal:1001", "cols": 80}
    assert result["ticket"] == {
        "secret": "s3cret",
        "mode": "CONTROL",
        "expiresAt": "2026-11-30T12:01:00.000Z",
        "socketPath": "/terminals/terminal:1001/socket",
    }


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"sessionId": "outside:zz"}, "INVALID_REQUEST", NO_ID),
        ({"sessionId": ""}, "INVALID_REQUEST", NO_ID),
        ({"sessionId": "x" * 9000}, "INVALID_REQUEST", NO_ID),
        ({"cols": 0}, "INVALID_REQUEST", NO_SIZE),
        ({"rows": 501}, "INVALID_REQUEST", NO_SIZE),
        ({"cols": 2**31 - 1}, "INVALID_REQUEST", NO_SIZE),
        (
            {"idempotencyKey": ""},
            "INVALID_REQUEST",
            "idempotencyKey must not be empty",
        ),
        (
            {"idempotencyKey": "a\x00"},
            "INVALID_REQUEST",
            "idempotencyKey must not contain control characters",
        ),
        (
            {"idempotencyKey": "k" * 129},
            "INVALID_REQUEST",
            "idempotencyKey must not be longer than 128",
        ),
        (
            {"sessionId": session_id(77)},
            "OUTSIDE_SESSION_NOT_FOUND",
            "That session is no longer in the list.",
        ),
        (
            {"sessionId": session_id(1)},
            "OUTSIDE_SESSION_LIVE",
            "This session is still running. Only an ended session can be resumed.",
        ),
    ],
)
async def test_a_resume_that_may_not_be_starts_nothing_and_says_why(
    changes: dict[str, Any], code: str, message: str
) -> None:
    """resume.md, checks 0a, 0b, 1 and 2, with their sentences."""
    world = make_world()
    async with world.client() as client:
        result = (await client.data(RESUME, wish(**changes)))["resumeOutsideSession"]
    assert (result["code"], result["message"]) == (code, message)
    assert world.terminals.starts == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"cols": 80.5},
        {"cols": "80"},
        {"cols": None},
        {"cols": 2**31},
        {"template": "shell"},
        {"conversationId": "x"},
        {"arguments": ["--x"]},
        {"sessionId": 1.5},
        {"sessionId": None},
    ],
)
async def test_a_resume_of_another_form_is_bad_input(changes: dict[str, Any]) -> None:
    """resume.md: no field can be added; Float and String are no sizes."""
    world = make_world()
    async with world.client() as client:
        assert await client.code(RESUME, wish(**changes)) == "BAD_USER_INPUT"
    assert world.terminals.starts == 0


@pytest.mark.parametrize(
    "failure",
    [
        errors.OutsideResumeBusy("Busy."),
        errors.OutsideResumeUnavailable("No."),
        errors.ConversationTaken("Taken."),
        errors.IdempotencyKeyReused("Reused."),
        errors.TemplateNotAllowed("Not allowed."),
        errors.SandboxUnavailable("No bubblewrap."),
        errors.AgentNotFound("No claude."),
        errors.TerminalLimitReached("Full."),
        errors.StartFailed("Failed."),
        errors.HostUnavailable("Gone."),
        errors.StorageUnavailable("The disk is full."),
        errors.ProjectChanged("Changed."),
    ],
)
async def test_each_refusal_is_a_typed_error(failure: errors.SidestageError) -> None:
    world = make_world()
    world.terminals.failure = failure
    async with world.client() as client:
        result = (await client.data(RESUME, wish()))["resumeOutsideSession"]
    assert result == {
        "__typename": type(failure).__name__,
        "code": failure.code.value,
        "message": str(failure),
    }


async def test_an_open_conversation_carries_its_terminal() -> None:
    """resume.md, check 1a."""
    world = make_world()
    world.terminals.failure = errors.OutsideSessionResumed(
        "This session is already open in a terminal.", terminal_id="terminal:1"
    )
    async with world.client() as client:
        result = (await client.data(RESUME, wish()))["resumeOutsideSession"]
    assert result["openTerminal"] == {"id": "terminal:1"}
    assert result["code"] == "OUTSIDE_SESSION_RESUMED"


async def test_an_error_that_the_union_does_not_name_is_told_at_the_top() -> None:
    world = make_world()
    world.terminals.failure = errors.PermissionDenied("Not here.")
    async with world.client() as client:
        result = await client.ask(RESUME, wish())
    assert result["data"] is None
    assert result["errors"][0]["extensions"]["code"] == "PERMISSION_DENIED"
    assert result["errors"][0]["path"] == ["resumeOutsideSession"]


async def test_a_bug_is_masked_and_logged_under_its_reference(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = make_world()
    world.terminals.failure = ValueError("secret /path")  # type: ignore[assignment]  # a bug
    async with world.client() as client:
        error = (await client.ask(RESUME, wish()))["errors"][0]
    assert error["extensions"]["code"] == "INTERNAL"
    assert "secret" not in error["message"]
    assert error["extensions"]["reference"] in caplog.text
    assert "secret /path" in caplog.text


async def test_a_terminal_is_started_renamed_resized_and_closed() -> None:
    world = make_world()
    started = {"projectId": "project:1", "template": "template:shell"}
    async with world.client() as client:
        result = await client.data(START, {"input": {**started, "cols": 9, "rows": 9}})
        id_ = result["startTerminal"]["terminal"]["id"]
        query = """mutation($id: ID!) {
            renameTerminal(input: {terminalId: $id, name: "Ada"}) {
                ... on RenameTerminalPayload { terminal { name } } }
            resizeTerminal(input: {terminalId: $id, cols: 7, rows: 8}) {
                ... on ResizeTerminalPayload { terminal { cols rows } } }
            closeTerminal(input: {terminalId: $id}) {
                ... on CloseTerminalPayload { terminal { name cols } } } }"""
        data = await client.data(query, {"id": id_})
    assert data["resizeTerminal"]["terminal"] == {"cols": 7, "rows": 8}
    assert data["closeTerminal"]["terminal"] == {"name": "Ada", "cols": 7}
    assert world.terminals.feed.get(id_) is None


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("renameTerminal", ', name: "x"'),
        ("resizeTerminal", ", cols: 1, rows: 1"),
        ("closeTerminal", ""),
        ("issueTerminalTicket", ""),
    ],
)
async def test_a_terminal_that_is_not_there_is_a_typed_error(
    field: str, more: str
) -> None:
    query = f"""mutation {{ {field}(input: {{terminalId: "terminal:9"{more}}}) {{
        ... on UserError {{ code }} }} }}"""
    async with make_world().client() as client:
        assert (await client.data(query))[field] == {"code": "TERMINAL_NOT_FOUND"}


async def test_a_reader_gets_a_ticket_to_view_but_none_to_type() -> None:
    query = """mutation($mode: TicketMode!) { issueTerminalTicket(input:
        {terminalId: "terminal:1", mode: $mode}) {
        ... on IssueTerminalTicketPayload { ticket { mode } } } }"""
    async with make_world().client(READER) as client:
        data = await client.data(query, {"mode": "VIEW"})
        assert data["issueTerminalTicket"]["ticket"]["mode"] == "VIEW"
        assert await client.code(query, {"mode": "CONTROL"}) == "PERMISSION_DENIED"


PROJECT = """mutation($input: RegisterProjectInput!) { registerProject(input: $input) {
    ... on RegisterProjectPayload { project { id name path readOnly
        templates { id } } } ... on UserError { code message } } }"""


async def test_a_project_is_registered_changed_and_forgotten() -> None:
    world = make_world()
    new = {"path": "/srv/x", "name": "X", "templates": ["template:shell"]}
    async with world.client() as client:
        result = (await client.data(PROJECT, {"input": new}))["registerProject"]
        id_ = result["project"]["id"]
        assert result["project"]["templates"] == [{"id": "template:shell"}]
        query = """mutation($id: ID!) {
            updateProject(input: {projectId: $id, readOnly: true,
                allowAllTemplates: true}) { ... on UpdateProjectPayload {
                project { name readOnly templates { id } } } }
            removeProject(input: {projectId: $id}) {
                ... on RemoveProjectPayload { project { id } } } }"""
        data = await client.data(query, {"id": id_})
    assert data["updateProject"]["project"] == {
        "name": "X",
        "readOnly": True,
        "templates": None,
    }
    assert data["removeProject"]["project"]["id"] == id_
    assert world.projects.feed.get(id_) is None
    assert world.projects.actors[0].actor == "admin"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"path": "relative"}, "INVALID_REQUEST"),
        ({"path": ""}, "INVALID_REQUEST"),
        ({"path": "/a\x00b"}, "INVALID_REQUEST"),
        ({"path": "/" + "a" * 5000}, "INVALID_REQUEST"),
        ({"name": "  "}, "INVALID_REQUEST"),
        ({"name": "n" * 201}, "INVALID_REQUEST"),
        ({"templates": ["template:x"] * 51}, "INVALID_REQUEST"),
        ({"templates": [""]}, "INVALID_REQUEST"),
        ({"path": "/home/ada/project1"}, "PROJECT_EXISTS"),
    ],
)
async def test_a_folder_that_may_not_be_a_project_is_a_typed_error(
    changes: dict[str, Any], code: str
) -> None:
    """api.md, line 10: NUL and senseless texts never reach a port."""
    async with make_world().client() as client:
        data = await client.data(PROJECT, {"input": {"path": "/srv/x", **changes}})
    assert data["registerProject"]["code"] == code


async def test_templates_are_named_or_all_allowed_but_not_both() -> None:
    query = """mutation { updateProject(input: {projectId: "project:1", templates: [],
        allowAllTemplates: true}) { ... on UserError { code } } }"""
    async with make_world().client() as client:
        assert (await client.data(query))["updateProject"]["code"] == "INVALID_REQUEST"
