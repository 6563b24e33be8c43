"""What is refused, with which sentence, and that nothing is started then."""

import json
import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.real_claude import READY, Json
from tests.e2e.resume.bench import Conversation, ResumeBench, resumed_processes
from tests.e2e.running_server import RESUME
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.sandbox, pytest.mark.timeout(180)]

NO_PROJECT = "Not in a project, so it can't be resumed."
NO_CONVERSATION = "There is no conversation id, so it can't be resumed."
NOTHING_SAID = "Nothing was said in this session yet, so it can't be resumed."
NO_FOLDER = "Its folder no longer exists, so it can't be resumed."
LIVE = "This session is still running. Only an ended session can be resumed."
SILENT = "11111111-1111-4111-8111-111111111111"
UNAVAILABLE = "OUTSIDE_RESUME_UNAVAILABLE"
PAYLOAD = "ResumeOutsideSessionPayload"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResumeBench]:
    with ResumeBench.open(tmp_path_factory.mktemp("refuse")) as bench:
        yield bench
        assert bench.terminals() == []


def refused(bench: ResumeBench, session_id: str, code: str, message: str) -> None:
    """Check the mutation's answer, and that no terminal came of it."""
    answer = bench.server.resume(session_id)
    assert (answer["code"], answer["message"]) == (code, message)
    assert bench.terminals() == []


def refused_everywhere(bench: ResumeBench, session: Conversation, message: str) -> None:
    """Check the mutation's answer, and that the row shows the same reason."""
    refused(bench, session.id, UNAVAILABLE, message)
    assert bench.row(session.id)["resume"] == {
        "available": False,
        "refusal": {"code": UNAVAILABLE, "message": message},
    }
    assert resumed_processes(session) == []


def test_a_session_outside_of_any_project(bench: ResumeBench) -> None:
    """Line 4."""
    outside = bench.claude.make_project("unregistered")
    session = bench.say_headless("first words", directory=outside)
    refused_everywhere(bench, session, NO_PROJECT)


def test_a_session_that_moved_into_a_project_counts_where_it_began(
    bench: ResumeBench,
) -> None:
    """Line 16b: the folder of the first record counts, not the newest one."""
    outside = bench.claude.make_project("began-here")
    session = bench.say_headless("first words", directory=outside)
    bench.run_claude(
        *("-p", "--resume", session.conversation_id, "moved here"),
        directory=bench.project,
    )
    assert str(bench.project).encode() in session.transcript.read_bytes()
    moved = "{ node(id: %s) { ... on OutsideSession { directory currentDirectory } } }"
    document = moved % json.dumps(session.id)
    wait_for(
        lambda: (
            bench.server.query(document)["node"]
            == {"directory": str(outside), "currentDirectory": str(bench.project)}
        ),
        "the row says where the session is now",
    )
    refused_everywhere(bench, session, NO_PROJECT)


def test_a_live_session_in_each_of_its_states(bench: ResumeBench) -> None:
    """Line 5: refused by check 2; neither a button nor a reason in the row."""
    with bench.keyboard() as terminal:
        terminal.wait_for(READY)
        terminal.send("stub:slow(3) a while\r")
        [transcript] = wait_for(
            lambda: [
                it for it in bench.claude.transcripts() if b"a while" in it.read_bytes()
            ],
            "the transcript",
        )
        session = Conversation(bench.row_id(transcript.stem), transcript)
        live_and_refused(bench, session, "RUNNING")
        live_and_refused(bench, session, "IDLE")
        terminal.wait_for(READY)
        terminal.send("stub:bash(touch asked.txt)\r")
        live_and_refused(bench, session, "ASKING")
    bench.wait_ended(session)


def live_and_refused(bench: ResumeBench, session: Conversation, state: str) -> None:
    row = bench.wait_row(session.id, lambda row: row["state"] == state)
    assert row["resume"] == {"available": False, "refusal": None}
    refused(bench, session.id, "OUTSIDE_SESSION_LIVE", LIVE)


def test_a_live_session_outside_of_any_project_is_called_live(
    bench: ResumeBench,
) -> None:
    """Line 7, checks 2 and 3."""
    outside = bench.claude.make_project("unregistered-too")
    with bench.claude.start("first words", directory=outside) as terminal:
        terminal.wait_for("Stub answer")
        [entry] = wait_for(
            lambda: [it for it in bench.claude.registry() if it["pid"] == terminal.pid],
            "the registry entry",
        )
        session_id = bench.row_id(entry["sessionId"])
        bench.wait_row(session_id, lambda row: row["state"] == "IDLE")
        refused(bench, session_id, "OUTSIDE_SESSION_LIVE", LIVE)


def test_the_earlier_of_several_failing_checks_answers(bench: ResumeBench) -> None:
    """Line 7, checks 3 to 8, each before the next."""
    outside = bench.claude.make_project("unregistered-gone")
    session = bench.say_headless("first words", directory=outside)
    shutil.rmtree(outside)
    refused_when_folder_is_gone(bench, session, NO_PROJECT)  # 3 before 7

    folder = bench.claude.make_project(f"{bench.project.name}/gone")
    session = bench.say_headless("first words", directory=folder)
    bad = plant(bench, session, "no-uuid", with_prompt=False)
    silent = plant(bench, session, SILENT, with_prompt=False)
    shutil.rmtree(folder)
    refused_when_folder_is_gone(bench, bad, NO_CONVERSATION)  # 5 before 6 and 7
    refused_when_folder_is_gone(bench, silent, NOTHING_SAID)  # 6 before 7
    set_templates(bench, ["template:shell"])
    refused_when_folder_is_gone(bench, session, NO_FOLDER)  # 7 before 8

    elsewhere = bench.say_headless("first words")
    with bench.keyboard("-c") as terminal:
        os.kill(terminal.pid, signal.SIGSTOP)
        answer = bench.server.resume(elsewhere.id)
        assert answer["code"] == "TEMPLATE_NOT_ALLOWED", answer  # 8 before 9
    set_templates(bench, None)
    assert bench.terminals() == []


def refused_when_folder_is_gone(
    bench: ResumeBench, session: Conversation, message: str
) -> None:
    """The mutation looks at the folder anew, and the row shows what it saw."""
    refused(bench, session.id, UNAVAILABLE, message)
    wanted = {"code": UNAVAILABLE, "message": message}
    bench.wait_row(session.id, lambda row: row["resume"]["refusal"] == wanted)


def plant(
    bench: ResumeBench, session: Conversation, stem: str, *, with_prompt: bool = True
) -> Conversation:
    """Write the session's transcript again under another conversation id."""
    kept = [
        line
        for line in session.transcript.read_text().splitlines(keepends=True)
        if with_prompt or json.loads(line)["type"] in {"attachment", "assistant"}
    ]
    transcript = session.transcript.with_name(f"{stem}.jsonl")
    transcript.write_text("".join(kept))
    return bench.conversation_of(transcript)


def set_templates(bench: ResumeBench, templates: list[str] | None) -> None:
    given: Json = {"projectId": bench.project_id}
    if templates is None:
        given["allowAllTemplates"] = True
    else:
        given["templates"] = templates
    data = bench.server.query(
        """mutation Update($input: UpdateProjectInput!) {
          updateProject(input: $input) {
            __typename ... on UserError { code message } } }""",
        {"input": given},
    )
    assert data["updateProject"]["__typename"] == "UpdateProjectPayload", data


def test_ids_and_sizes_of_another_form(bench: ResumeBench) -> None:
    """Line 8: check 0 answers, before any other; the rest GraphQL itself refuses."""
    session = bench.say_headless("first words")
    for session_id in ("outside:zz", "", "outside:" + "A" * 32):
        for cols in (100, 0):  # the id is looked at first
            answer = bench.server.resume(session_id, cols=cols)
            assert answer["__typename"] == "InvalidInput"
            assert answer["code"] == "INVALID_REQUEST"
            assert answer["message"] == "That is not an outside session id."
    unknown = "outside:" + "0" * 32
    for session_id in (session.id, unknown):
        for cols, rows in ((0, 40), (501, 40), (100, 0), (100, 501), (-1, -1)):
            answer = bench.server.resume(session_id, cols=cols, rows=rows)
            assert answer["code"] == "INVALID_REQUEST"
            assert answer["message"] == (
                "cols and rows must be whole numbers from 1 to 500"
            )
    refused(
        bench,
        unknown,
        "OUTSIDE_SESSION_NOT_FOUND",
        "That session is no longer in the list.",
    )
    given = {"sessionId": session.id, "cols": 100, "rows": 40}
    for wrong in (
        {"sessionId": session.id, "cols": 100},
        {**given, "rows": 40.5},
        {**given, "rows": "40"},
        {**given, "rows": None},
        {**given, "directory": "/"},
        {**given, "template": "template:shell"},
        {**given, "arguments": ["--version"]},
        {**given, "conversationId": session.conversation_id},
    ):
        answer = bench.server.post(RESUME, {"input": wrong}).json()
        assert answer["errors"], wrong
        assert not answer.get("data")
    assert bench.terminals() == []
    assert resumed_processes(session) == []


@pytest.mark.parametrize(
    "stem",
    [
        "--dangerous",
        "x; rm",
        "{uuid}\n",
        "{digits35}",
        "{{{uuid}}}",
        "{uuid}.jsonl",
        " {uuid}",
    ],
)
def test_a_stored_id_that_is_no_uuid_never_becomes_an_argument(
    bench: ResumeBench, stem: str
) -> None:
    """Line 9."""
    session = bench.say_headless("first words")
    uuid = session.conversation_id
    name = stem.format(uuid=uuid, digits35=uuid.replace("-", "")[:-1] + "a-b-c")
    refused_everywhere(bench, plant(bench, session, name), NO_CONVERSATION)


def test_a_registry_entry_without_an_id_is_no_session(bench: ResumeBench) -> None:
    """Line 9, an absent id: nothing is listed, so check 1 answers."""
    sessions = bench.claude.config_dir / "sessions"
    for number, id_ in ((4194303, ""), (4194304, SILENT.replace("1", "2"))):
        entry = {"pid": number, "sessionId": id_, "cwd": str(bench.project)}
        text = json.dumps({**entry, "procStart": "1"})
        (sessions / f"{number}.json").write_text(text)
    # The second tells that the first has been read.
    bench.wait_row(bench.row_id(SILENT.replace("1", "2")), lambda row: row)
    answer = bench.server.resume(bench.row_id(""))
    assert answer["code"] == "OUTSIDE_SESSION_NOT_FOUND", answer


def test_an_upper_case_id_is_one(bench: ResumeBench) -> None:
    """Line 9: accepted, and passed on as it is."""
    session = bench.say_headless("first words")
    upper = plant(bench, session, session.conversation_id.upper())
    started = bench.server.resume(upper.id)
    assert started["__typename"] == PAYLOAD, started
    [process] = wait_for(lambda: resumed_processes(upper), "the agent runs")
    assert process.cmdline()[-1] == session.conversation_id.upper()
    bench.server.close_terminal(started["terminal"]["id"])


def test_a_template_that_is_allowed_again_can_be_used(bench: ResumeBench) -> None:
    """Line 12, template: refused with project and template; then a retry works."""
    session = bench.say_headless("first words")
    set_templates(bench, ["template:shell"])
    answer = bench.server.resume(session.id, key="same")
    assert answer["code"] == "TEMPLATE_NOT_ALLOWED", answer
    assert bench.project.name in answer["message"]
    assert "Claude Code" in answer["message"]
    assert resumed_processes(session) == []
    set_templates(bench, None)
    started = bench.server.resume(session.id, key="same")
    assert started["__typename"] == PAYLOAD, started
    with bench.server.attach(started["ticket"]) as client:
        client.wait_for("Stub answer to: first words")
    bench.server.close_terminal(started["terminal"]["id"])
