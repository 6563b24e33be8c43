"""What can be asked, over the real HTTP application and parts in memory."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from resolvers.parts import Health
from sidestage.errors import ErrorCode
from sidestage.sessions.model import (
    AgentKind,
    MessagePreview,
    MessageRole,
    SessionState,
)
from sidestage.sessions.transcript import EntryKind
from tests.fakes.parts import make_world
from tests.fakes.tokens import OPERATOR, READER, VIEWER
from tests.fakes.values import (
    SECRET_CONVERSATION,
    START,
    a_project,
    a_session,
    a_terminal,
    an_entry,
    session_id,
)

NESTED = """{ ...F } fragment F on Query { node(id: "") { ... on Terminal {
    screen } } }"""
CLOSE = 'mutation { closeTerminal(input: {terminalId: "terminal:1"}) { __typename } }'
REMOVE = 'mutation { removeProject(input: {projectId: "project:1"}) { __typename } }'
TICKET = """mutation { issueTerminalTicket(input: {terminalId: "terminal:1"}) {
    __typename } }"""
IDS = "query($f: OutsideSessionFilter) { outsideSessions(filter: $f) { nodes { id } } }"


def numbers(data: dict[str, Any]) -> list[int]:
    return [int(node["id"][8:], 16) for node in data["outsideSessions"]["nodes"]]


async def test_sessions_come_latest_start_first() -> None:
    async with make_world().client() as client:
        assert numbers(await client.data(IDS)) == [3, 2, 1]


async def test_folders_are_shown_without_control_characters() -> None:
    """A folder may be called anything; its name drove the terminal that showed it."""
    folder = "/srv/a  b\x1b]0;owned\x07"
    world = make_world(
        sessions=(a_session(1, directory=folder, current_directory=folder),),
        projects=(a_project(1, path=folder),),
        terminals=(a_terminal(1, directory=folder),),
    )
    query = """{
      outsideSessions { nodes { directory currentDirectory } }
      projects { nodes { path } } terminals { nodes { directory } } }"""
    async with world.client() as client:
        data = await client.data(query)
    shown = [
        value
        for connection in data.values()
        for node in connection["nodes"]
        for value in node.values()
    ]
    assert shown == ["/srv/a  b\ufffd]0;owned\ufffd"] * 4


async def test_a_default_page_has_fifty_sessions_and_says_that_more_follow() -> None:
    """api.md, line 12."""
    world = make_world(sessions=tuple(a_session(n) for n in range(60)))
    async with world.client() as client:
        query = "{ outsideSessions { nodes { id } pageInfo { hasNextPage } } }"
        page = (await client.data(query))["outsideSessions"]
    assert len(page["nodes"]) == 50
    assert page["pageInfo"]["hasNextPage"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("STARTED", [3, 2, 1]), ("LAST_ACTIVITY", [1, 3, 2]), ("NAME", [2, 1, 3])],
)
async def test_sessions_are_ordered_as_asked(order: str, expected: list[int]) -> None:
    world = make_world(
        sessions=(
            a_session(1, name="b", last_activity_at=START + timedelta(days=1)),
            a_session(2, name="A"),
            a_session(3, name="c", started_at=START + timedelta(hours=1)),
        )
    )
    async with world.client() as client:
        query = f"{{ outsideSessions(orderBy: {order}) {{ nodes {{ id }} }} }}"
        assert numbers(await client.data(query)) == expected


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({}, [3, 2, 1]),
        ({"states": []}, [3, 2, 1]),
        ({"states": ["ENDED", "ASKING"]}, [3]),
        ({"agent": "CODEX"}, [2]),
        ({"projectId": "project:1"}, [3, 1]),
        ({"text": "FEATURE"}, [1]),
        ({"text": "goodbye"}, [2]),
        ({"activeSince": "2026-11-30T12:02:00Z"}, [3, 2]),
        ({"activeWithinSeconds": 90}, [3, 2]),
        ({"hasTerminal": True}, [1]),
        ({"hasTerminal": False}, [3, 2]),
        ({"resumable": True}, [3]),
        ({"resumable": False}, [2, 1]),
        ({"states": ["IDLE"], "hasTerminal": True}, [1]),
    ],
)
async def test_sessions_are_filtered_as_asked(
    wish: dict[str, Any], expected: list[int]
) -> None:
    world = make_world(
        sessions=(
            a_session(1, git_branch="Feature", terminal_id="terminal:1"),
            a_session(
                2,
                agent=AgentKind.CODEX,
                project_id=None,
                last_message=MessagePreview(MessageRole.USER, "Goodbye.", START),
            ),
            a_session(3, state=SessionState.ENDED),
        ),
        clock=lambda: START + timedelta(minutes=3),
    )
    async with world.client() as client:
        assert numbers(await client.data(IDS, {"f": wish})) == expected


async def test_a_text_filter_is_no_oracle_for_who_may_not_read() -> None:
    """Names can be guessed, last words by a text filter too."""
    world = make_world()
    async with world.client(VIEWER) as client:
        assert await client.code(IDS, {"f": {"text": "x"}}) == "PERMISSION_DENIED"
    async with world.client(READER) as client:
        assert numbers(await client.data(IDS, {"f": {"text": "Session 2"}})) == [2]


@pytest.mark.parametrize(
    "wish",
    [
        {"text": "x" * 201},
        {"activeWithinSeconds": 0},
        {"activeWithinSeconds": -5},
        {"projectId": "terminal:1"},
        {"projectId": "x" * 500},
    ],
)
async def test_a_filter_that_makes_no_sense_is_bad_input(wish: dict[str, Any]) -> None:
    async with make_world().client() as client:
        assert await client.code(IDS, {"f": wish}) == "BAD_USER_INPUT"


async def test_a_session_shows_project_terminal_and_what_it_continues() -> None:
    world = make_world(
        sessions=(
            a_session(1, continued_from_id=session_id(2), terminal_id="terminal:1"),
            a_session(2),
        ),
        terminals=(a_terminal(1, session_id=session_id(1)),),
    )
    query = """query($id: ID!) { node(id: $id) { ... on OutsideSession {
        project { id name path templates { id } host { id } }
        terminal { id state sandbox { kind } template { id } project { id } host { id }
            session { id } }
        continuedFrom { id continuations { nodes { id } } } host { name } } } }"""
    async with world.client() as client:
        node = (await client.data(query, {"id": session_id(1)}))["node"]
    assert node["project"]["id"] == "project:1"
    assert node["terminal"]["session"]["id"] == session_id(1)
    assert node["terminal"]["template"]["id"] == "template:shell"
    assert node["continuedFrom"]["id"] == session_id(2)
    assert node["continuedFrom"]["continuations"]["nodes"] == [{"id": session_id(1)}]


async def test_what_a_session_points_to_may_be_gone() -> None:
    world = make_world(
        sessions=(
            a_session(
                1,
                project_id=None,
                terminal_id="terminal:gone",
                continued_from_id=session_id(9),
            ),
        )
    )
    query = (
        "{ outsideSessions { nodes { project { id } terminal { id } "
        "continuedFrom { id } } } }"
    )
    async with world.client() as client:
        nodes = (await client.data(query))["outsideSessions"]["nodes"]
    assert nodes == [{"project": None, "terminal": None, "continuedFrom": None}]


async def test_every_ended_row_says_whether_it_can_be_resumed_or_why_not() -> None:
    """resume.md: one rule for button and refusal; a live session shows neither."""
    world = make_world(
        sessions=(
            a_session(1),
            a_session(2, state=SessionState.ENDED, project_id=None),
            a_session(3, state=SessionState.ENDED),
        )
    )
    query = """{ outsideSessions { nodes {
        resume { available refusal { code message } } } } }"""
    async with world.client() as client:
        nodes = (await client.data(query))["outsideSessions"]["nodes"]
    assert [node["resume"]["available"] for node in nodes] == [True, False, False]
    assert [node["resume"]["refusal"] for node in nodes] == [
        None,
        {
            "code": "OUTSIDE_RESUME_UNAVAILABLE",
            "message": "Not in a project, so it can't be resumed.",
        },
        None,
    ]


async def test_big_numbers_travel_as_strings() -> None:
    async with make_world().client() as client:
        query = "{ outsideSessions(first: 1) { nodes { usage { cacheReadTokens } } } }"
        nodes = (await client.data(query))["outsideSessions"]["nodes"]
    assert nodes[0]["usage"]["cacheReadTokens"] == "3000000000"


NODE = "query($id: ID!) { node(id: $id) { __typename id } }"


@pytest.mark.parametrize(
    ("id_", "type_name"),
    [
        (session_id(1), "OutsideSession"),
        ("project:1", "Project"),
        ("terminal:1", "Terminal"),
        ("template:shell", "Template"),
        ("host:aa", "Host"),
        ("audit:3", "AuditEntry"),
    ],
)
async def test_an_id_leads_to_its_object(id_: str, type_name: str) -> None:
    async with make_world().client() as client:
        data = await client.data(NODE, {"id": id_})
    assert data["node"] == {"__typename": type_name, "id": id_}


@pytest.mark.parametrize(
    "id_",
    [
        "",
        ":",
        "outside:",
        "project:2",
        "host:bb",
        "audit:x",
        "audit:-1",
        "audit:99",
        "audit:²",
        f"audit:{2**80}",
        "nothing:1",
        "x" * 500,
        "outside:\x00",
    ],
)
async def test_an_id_that_names_nothing_gives_null(id_: str) -> None:
    async with make_world().client() as client:
        assert await client.data(NODE, {"id": id_}) == {"node": None}


async def test_nodes_keep_the_order_and_show_gaps() -> None:
    query = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    async with make_world().client() as client:
        data = await client.data(query, {"ids": ["project:1", "x", "terminal:1"]})
        assert data["nodes"] == [{"id": "project:1"}, None, {"id": "terminal:1"}]
        assert await client.code(query, {"ids": ["x"] * 101}) == "BAD_USER_INPUT"


async def test_node_is_no_way_around_the_audit_logs_scope() -> None:
    """Without selecting a field of AuditEntry it would tell that the entry exists."""
    async with make_world().client(READER) as client:
        assert await client.code(NODE, {"id": "audit:3"}) == "PERMISSION_DENIED"


async def test_a_transcript_is_paged_by_the_order_of_its_entries() -> None:
    """An entry's `order` equals the connection's cursor."""
    query = """query($id: ID!, $last: Int, $before: String) { node(id: $id) {
        ... on OutsideSession { transcript(last: $last, before: $before) {
            edges { cursor node { order body { text truncated } } } branchId totalCount
            skippedLines branches { id isActive } pageInfo { hasPreviousPage
            startCursor } } } } }"""
    async with make_world().client() as client:
        variables: dict[str, Any] = {"id": session_id(1), "last": 2}
        page = (await client.data(query, variables))["node"]["transcript"]
        assert [e["node"]["body"]["text"] for e in page["edges"]] == [
            "Entry 1",
            "Entry 2",
        ]
        assert all(e["cursor"] == e["node"]["order"] for e in page["edges"])
        assert page["pageInfo"]["hasPreviousPage"]
        assert page["branchId"] == "main"
        variables["before"] = page["pageInfo"]["startCursor"]
        page = (await client.data(query, variables))["node"]["transcript"]
        assert [e["node"]["body"]["text"] for e in page["edges"]] == ["Entry 0"]
        variables["before"] = "made up"
        assert await client.code(query, variables) == "BAD_USER_INPUT"


async def test_each_kind_of_entry_has_a_type() -> None:
    world = make_world()
    entries = [an_entry(10 + n, kind) for n, kind in enumerate(EntryKind)]
    world.transcripts.entries[session_id(2)] = entries
    query = """query($id: ID!) { node(id: $id) { ... on OutsideSession {
        transcript { nodes { __typename ... on MessageEntry { model } } } } } }"""
    async with world.client() as client:
        node = (await client.data(query, {"id": session_id(2)}))["node"]
    names = [entry["__typename"] for entry in node["transcript"]["nodes"]]
    assert len(set(names)) == len(EntryKind)
    assert "ToolCallEntry" in names


async def test_a_transcript_that_fails_does_not_take_the_row_with_it() -> None:
    query = """query($id: ID!) { node(id: $id) { id ... on OutsideSession {
        transcript { totalCount } } } }"""
    async with make_world().client() as client:
        result = await client.ask(query, {"id": session_id(2)})
    assert result["data"]["node"] == {"id": session_id(2), "transcript": None}
    assert result["errors"][0]["extensions"]["code"] == "OUTSIDE_SESSION_NOT_FOUND"


async def test_a_screen_is_read_up_to_a_limit() -> None:
    query = "query($n: Int!) { terminals { nodes { screen(lines: $n) } } }"
    async with make_world().client() as client:
        nodes = (await client.data(query, {"n": 2}))["terminals"]["nodes"]
        assert nodes == [{"screen": "line 0\nline 1"}]
        assert await client.code(query, {"n": 0}) == "BAD_USER_INPUT"
        assert await client.code(query, {"n": 1001}) == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("STATE", [("state", "IDLE", 2), ("state", "ENDED", 1)]),
        ("AGENT", [("agent", "CLAUDE_CODE", 3)]),
        ("PROJECT", [("project", {"id": "project:1"}, 3)]),
    ],
)
async def test_sessions_are_counted(
    group: str, expected: list[tuple[str, Any, int]]
) -> None:
    query = f"""{{ sessionCounts(groupBy: {group}) {{
        count state agent project {{ id }} }} }}"""
    async with make_world().client() as client:
        counts = (await client.data(query))["sessionCounts"]
    for count, (name, value, number) in zip(counts, expected, strict=True):
        empty = {"state": None, "agent": None, "project": None}
        assert count == {**empty, "count": number, name: value}


USAGE = """query($from: DateTime!, $to: DateTime!, $bucket: UsageBucket!, $p: ID) {
    usage(from: $from, to: $to, bucket: $bucket, projectId: $p) { start messages } }"""


@pytest.mark.parametrize(
    ("start", "end", "bucket", "project"),
    [
        ("2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "HOUR", None),
        ("2020-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "DAY", None),
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "DAY", None),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "DAY", None),
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "DAY", "terminal:1"),
    ],
)
async def test_usage_over_a_senseless_time_is_bad_input(
    start: str, end: str, bucket: str, project: str | None
) -> None:
    variables = {"from": start, "to": end, "bucket": bucket, "p": project}
    async with make_world().client() as client:
        assert await client.code(USAGE, variables) == "BAD_USER_INPUT"


async def test_usage_is_told_over_time() -> None:
    variables = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    async with make_world().client() as client:
        data = await client.data(USAGE, {**variables, "bucket": "HOUR"})
    assert data["usage"] == [{"start": "2026-01-01T00:00:00.000Z", "messages": 1}]


AUDIT = """query($first: Int, $after: String, $last: Int, $before: String) {
    auditLog(first: $first, after: $after, last: $last, before: $before) {
        nodes { seq }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""


async def test_the_audit_log_is_paged_both_ways() -> None:
    async with make_world().client() as client:
        page = (await client.data(AUDIT, {"first": 2}))["auditLog"]
        assert [node["seq"] for node in page["nodes"]] == ["5", "4"]
        assert page["pageInfo"]["hasNextPage"]
        after = page["pageInfo"]["endCursor"]
        page = (await client.data(AUDIT, {"first": 9, "after": after}))["auditLog"]
        assert [node["seq"] for node in page["nodes"]] == ["3", "2", "1"]
        assert not page["pageInfo"]["hasNextPage"]
        assert page["pageInfo"]["hasPreviousPage"]
        before = page["pageInfo"]["startCursor"]
        page = (await client.data(AUDIT, {"last": 1, "before": before}))["auditLog"]
        assert [node["seq"] for node in page["nodes"]] == ["4"]
        assert page["pageInfo"]["hasPreviousPage"]
        page = (await client.data(AUDIT, {"last": 2}))["auditLog"]
        assert [node["seq"] for node in page["nodes"]] == ["2", "1"]


async def test_the_audit_log_needs_admin() -> None:
    async with make_world().client(OPERATOR) as client:
        assert (
            await client.code("{ auditLog { nodes { seq } } }") == "PERMISSION_DENIED"
        )


async def test_the_server_says_what_it_is() -> None:
    """api.md, line 4."""
    query = """{ server { version schemaVersion contentMode oldestClient urls
        capabilities
        host { id name } health { status ready notes counters { name value } } } }"""
    world = make_world(public_urls=("https://box.example/side",))
    async with world.client() as client:
        server = (await client.data(query))["server"]
    assert server["urls"] == ["https://box.example/side", "http://127.0.0.1:7433"]
    assert server["contentMode"] == "CLEAR"
    assert server["health"]["status"] == "OK"


@pytest.mark.parametrize(
    ("query", "token"),
    [
        ("{ outsideSessions { nodes { lastMessage { text } } } }", VIEWER),
        ("{ terminals { nodes { screen } } }", OPERATOR),
        ("{ auditLog { nodes { id } } }", READER),
        (
            '{ node(id: "x") { ... on OutsideSession { transcript { totalCount } } } }',
            VIEWER,
        ),
        (
            NESTED,
            VIEWER,
        ),
        (
            CLOSE,
            READER,
        ),
        (
            REMOVE,
            OPERATOR,
        ),
        (
            TICKET,
            OPERATOR,
        ),
        (
            TICKET,
            READER,
        ),
    ],
)
async def test_what_a_token_does_not_reach_is_refused_whole(
    query: str, token: str
) -> None:
    """api.md: scopes hang on types and fields, so `node` is no way around them."""
    world = make_world()
    async with world.client(token) as client:
        result = await client.ask(query)
    assert result["errors"][0]["extensions"]["code"] == "PERMISSION_DENIED"
    assert not result.get("data")
    assert world.terminals.feed.get("terminal:1")
    assert world.projects.feed.get("project:1")


@pytest.mark.parametrize(
    "query",
    [
        "{ server { health { status } } }",
        "{ server { host { name } } }",
        "{ __schema { types { name } } }",
        '{ __type(name: "Query") { name } }',
        "{ outsideSessions { nodes { id } } }",
        "{ sidestage }",
        "query { server { ...F } } fragment F on Server { urls }",
        CLOSE,
    ],
)
async def test_without_a_token_nothing_more_than_the_version_is_told(
    query: str,
) -> None:
    """No counts, no health, no introspection, no suggestions."""
    async with make_world().client(None) as client:
        result = await client.ask(query)
    assert result["errors"] == [
        {
            "message": "A token is needed for this.",
            "extensions": {"code": ErrorCode.UNAUTHENTICATED.value},
        }
    ]
    assert "data" not in result


async def test_without_a_token_the_version_is_told() -> None:
    async with make_world().client(None) as client:
        data = await client.data("{ __typename server { version schemaVersion } }")
    assert data["server"] == {"version": "0.1.0", "schemaVersion": "1"}


async def test_any_token_may_introspect() -> None:
    async with make_world().client(VIEWER) as client:
        data = await client.data("{ __schema { queryType { name } } }")
    assert data["__schema"]["queryType"]["name"] == "Query"


async def test_no_answer_holds_a_conversation_id() -> None:
    """resume.md, line 14, for what the API itself says."""
    world = make_world(projects=(a_project(), replace(a_project(2), name="two")))
    query = """{ outsideSessions { nodes { id name directory currentDirectory gitBranch
        state stateEvidence { source } waitingFor { label } model permissionMode
        agentVersion lastMessage { text } conflict { message } resume { available }
        transcript { nodes { id order body { text } } } } } }"""
    async with world.client() as client:
        answer = await client.http.post("/graphql", json={"query": query})
    assert SECRET_CONVERSATION not in answer.text


async def test_an_audit_entry_tells_everything_but_content() -> None:
    query = """{ auditLog(first: 1) { edges { cursor node { id at actor action targetId
        outcome address code detail hash } } } }"""
    async with make_world().client() as client:
        (edge,) = (await client.data(query))["auditLog"]["edges"]
    assert edge["node"]["actor"] == "admin"
    assert edge["node"]["outcome"] == "DONE"
    assert len(edge["node"]["hash"]) == 64


async def test_the_audit_log_can_be_cut_from_both_ends() -> None:
    async with make_world().client() as client:
        edges = (await client.data("{ auditLog { edges { cursor } } }"))["auditLog"]
        newest, *_, oldest = (edge["cursor"] for edge in edges["edges"])
        for size in ({"first": 9}, {"last": 9}):
            variables = {"after": newest, "before": oldest, **size}
            page = (await client.data(AUDIT, variables))["auditLog"]
            assert [node["seq"] for node in page["nodes"]] == ["4", "3", "2"]


async def test_a_made_up_place_in_the_audit_log_is_bad_input() -> None:
    made_up = "WyJhdWRpdCIsIngiLCJ4Il0"  # ["audit","x","x"]
    async with make_world().client() as client:
        assert await client.code(AUDIT, {"after": made_up}) == "BAD_USER_INPUT"


async def test_what_needs_attention_is_told_with_counts() -> None:
    health = Health(ok=False, notes=("Watches ran out.",), counters={"tornLines": 3})
    world = make_world(health=lambda: health)
    query = "{ server { health { status notes counters { name value } } } }"
    async with world.client() as client:
        told = (await client.data(query))["server"]["health"]
    assert told == {
        "status": "DEGRADED",
        "notes": ["Watches ran out."],
        "counters": [{"name": "tornLines", "value": "3"}],
    }


async def test_a_clock_that_ran_wild_harms_no_list() -> None:
    late = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    world = make_world(sessions=(a_session(1, last_activity_at=late),))
    async with world.client() as client:
        data = await client.data(IDS, {"f": {"activeWithinSeconds": 600}})
    assert numbers(data) == [1]
