"""The checks of a resume, in their order, and what a start leaves behind."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from sidestage.audit import AuditOutcome
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from sidestage.errors import (
    AgentNotFound,
    ConversationTaken,
    ErrorCode,
    IdempotencyKeyReused,
    InvalidInput,
    OutsideResumeBusy,
    OutsideResumeUnavailable,
    OutsideSessionLive,
    OutsideSessionNotFound,
    OutsideSessionResumed,
    RateLimited,
    SandboxUnavailable,
    SidestageError,
    StartFailed,
    TemplateNotAllowed,
    TerminalLimitReached,
    TicketRefused,
)
from sidestage.ids import HostId, TerminalId
from sidestage.sessions.model import Session, SessionConflict, SessionState
from sidestage.terminals.desk import Started, TicketMode
from sidestage.terminals.model import TerminalState
from sidestage.terminals.templates import SHELL
from sidestage.terminals.tickets import TOKEN_TICKETS_LIMIT
from tests.unit.terminals.conftest import (
    CONVERSATION,
    OWNER,
    Bench,
    find_templates,
    make_session,
    until,
)


async def resume(
    bench: Bench,
    session_id: str,
    *,
    key: str | None = None,
    cols: int = 80,
    rows: int = 24,
    actor: Principal = OWNER,
) -> Started:
    return await bench.desk.resume(
        session_id=session_id, cols=cols, rows=rows, idempotency_key=key, actor=actor
    )


def ended(bench: Bench, **changes: object) -> Session:
    session = make_session(project_id=bench.project.id)
    return bench.add_session(replace(session, **changes))  # type: ignore[arg-type]  # field names


async def refusal(
    bench: Bench, session_id: str, *, cols: int = 80, rows: int = 24
) -> SidestageError:
    with pytest.raises(SidestageError) as caught:
        await resume(bench, session_id, cols=cols, rows=rows)
    assert bench.host.created == []
    return caught.value


async def test_a_resume_starts_one_program_on_the_conversation(bench: Bench) -> None:
    session = ended(bench)
    started = await resume(bench, session.id, cols=100, rows=30)
    [request] = bench.host.created
    assert request.argv == ("/usr/bin/claude", "--resume", CONVERSATION)
    assert request.conversation_id == CONVERSATION
    assert str(request.directory) == session.directory
    assert (request.cols, request.rows) == (100, 30)
    assert request.sandbox is not None
    assert started.terminal.name == "fix the bug (resumed)"
    assert started.terminal.session_id == session.id
    assert bench.links.linked == {started.terminal.id}


async def test_the_audit_log_names_the_sandbox_of_a_resume(bench: Bench) -> None:
    session = ended(bench)
    await resume(bench, session.id)
    entry = await bench.audit.head()
    assert entry is not None
    assert entry.record.action == "session.resume"
    assert entry.record.target_id == session.id
    assert "sandbox=bubblewrap" in (entry.record.detail or "")
    assert CONVERSATION not in repr(entry)


@pytest.mark.parametrize("text", ["", "outside:zz", "outside:" + "a" * 33, "x" * 999])
async def test_check_0a_an_id_of_another_form_is_refused(
    bench: Bench, text: str
) -> None:
    error = await refusal(bench, text)
    assert isinstance(error, InvalidInput)
    assert str(error) == "That is not an outside session id."


@pytest.mark.parametrize(("cols", "rows"), [(0, 24), (501, 24), (80, 0), (80, 501)])
async def test_check_0b_a_size_out_of_bounds_is_refused(
    bench: Bench, cols: int, rows: int
) -> None:
    session = ended(bench)
    error = await refusal(bench, session.id, cols=cols, rows=rows)
    assert isinstance(error, InvalidInput)
    assert str(error) == "cols and rows must be whole numbers from 1 to 500"


async def test_check_1_a_session_that_is_not_listed(bench: Bench) -> None:
    error = await refusal(bench, make_session().id)
    assert isinstance(error, OutsideSessionNotFound)
    assert str(error) == "That session is no longer in the list."


async def test_check_1a_a_conversation_of_ours_is_never_called_running(
    bench: Bench,
) -> None:
    session = ended(bench)
    started = await resume(bench, session.id)
    bench.add_session(replace(session, state=SessionState.RUNNING))
    with pytest.raises(OutsideSessionResumed) as caught:
        await resume(bench, session.id)
    assert caught.value.terminal_id == started.terminal.id
    assert str(caught.value) == "This session is already open in a terminal."


async def test_the_audit_log_says_who_asks_before_the_host_is_called(
    bench: Bench,
) -> None:
    """After a crash nothing told who had asked for what the host then started."""
    session = ended(bench)
    bench.host.gate.clear()
    asked = asyncio.create_task(resume(bench, session.id))
    await until_created(bench)
    head = await bench.audit.head()
    assert head is not None
    assert head.record.outcome is AuditOutcome.BEGUN
    assert (head.record.actor, head.record.target_id) == ("admin", session.id)
    bench.host.gate.set()
    await asked


async def test_check_1b_the_second_resume_in_flight_is_busy(bench: Bench) -> None:
    session = ended(bench)
    bench.host.gate.clear()
    first = asyncio.create_task(resume(bench, session.id))
    await until_created(bench)
    with pytest.raises(OutsideResumeBusy, match=r"^This session is already being resu"):
        await resume(bench, session.id)
    bench.host.gate.set()
    assert (await first).terminal.session_id == session.id
    assert len(bench.host.created) == 1


@pytest.mark.parametrize(
    "state", [SessionState.RUNNING, SessionState.ASKING, SessionState.IDLE]
)
async def test_check_2_a_live_session_is_left_alone(
    bench: Bench, state: SessionState
) -> None:
    error = await refusal(bench, ended(bench, state=state).id)
    assert isinstance(error, OutsideSessionLive)
    assert str(error) == (
        "This session is still running. Only an ended session can be resumed."
    )


async def test_check_2_is_made_anew_at_the_moment_of_the_start(bench: Bench) -> None:
    session = ended(bench)
    bench.sessions.truth[session.id] = replace(session, state=SessionState.IDLE)
    assert isinstance(await refusal(bench, session.id), OutsideSessionLive)


async def test_check_2_an_unknown_state_says_that_it_is_unknown(bench: Bench) -> None:
    error = await refusal(bench, ended(bench, state=SessionState.UNKNOWN).id)
    assert isinstance(error, OutsideResumeUnavailable)
    assert str(error) == "It can't be told whether this session still runs."


UNAVAILABLE: dict[str, dict[str, object]] = {
    "Not in a project, so it can't be resumed.": {"project_id": None},
    "On a host, so it can't be resumed here.": {"host_id": HostId("host:2")},
    "Nothing was said in this session yet, so it can't be resumed.": {
        "has_prompt": False
    },
    "Its folder no longer exists, so it can't be resumed.": {"directory_exists": False},
}


@pytest.mark.parametrize("message", UNAVAILABLE)
async def test_checks_3_to_7_answer_the_row_and_the_mutation_alike(
    bench: Bench, message: str
) -> None:
    session = ended(bench, **UNAVAILABLE[message])
    error = await refusal(bench, session.id)
    assert isinstance(error, OutsideResumeUnavailable)
    assert str(error) == message
    shown = bench.desk.resume_availability(session)
    assert shown is not None
    assert shown.refusal is not None
    assert shown.refusal.message == message
    assert shown.refusal.code is ErrorCode.OUTSIDE_RESUME_UNAVAILABLE


@pytest.mark.parametrize(
    "conversation",
    [
        "",
        "--dangerous",
        "x; rm",
        CONVERSATION + "\n",
        CONVERSATION[:-1],
        "{" + CONVERSATION + "}",
        "\uff12f70c0de-0000-4000-8000-00000000abcd",
    ],
)
async def test_check_5_what_is_no_conversation_id_never_becomes_an_argument(
    bench: Bench, conversation: str
) -> None:
    session = bench.add_session(
        make_session(conversation=conversation, project_id=bench.project.id)
    )
    error = await refusal(bench, session.id)
    assert str(error) == "There is no conversation id, so it can't be resumed."


async def test_check_5_an_upper_case_conversation_id_is_one(bench: Bench) -> None:
    upper = CONVERSATION.upper()
    session = bench.add_session(
        make_session(conversation=upper, project_id=bench.project.id)
    )
    await resume(bench, session.id)
    assert bench.host.created[0].argv[-1] == upper


async def test_check_8_names_the_project_and_the_template(bench: Bench) -> None:
    session = ended(bench)
    await bench.projects.update(
        bench.project.id,
        name="Shells only",
        read_only=None,
        templates=(SHELL,),
        allow_all_templates=False,
        actor=OWNER,
    )
    error = await refusal(bench, session.id)
    assert isinstance(error, TemplateNotAllowed)
    assert "Shells only" in str(error)
    assert "Claude Code" in str(error)


async def test_check_9_an_agent_that_is_just_starting_is_waited_for(
    bench: Bench,
) -> None:
    session = ended(bench)
    bench.links.starting = True
    error = await refusal(bench, session.id)
    assert isinstance(error, OutsideResumeBusy)
    assert str(error) == (
        "An agent is just starting in this folder. Try again in a moment."
    )
    assert bench.links.asked == [(session.directory, CONVERSATION)]


@pytest.mark.parametrize(
    "error",
    [SandboxUnavailable("Install it."), AgentNotFound("No claude."), StartFailed("no")],
)
async def test_check_10_a_failed_start_leaves_nothing_and_a_retry_works(
    bench: Bench, error: SidestageError
) -> None:
    session = ended(bench)
    bench.host.fails_with = error
    with pytest.raises(type(error)):
        await resume(bench, session.id, key="k")
    assert await bench.store.load() == ((), ())
    assert bench.links.linked == set()
    assert bench.preparer.finished == bench.preparer.prepared
    bench.host.fails_with = None
    started = await resume(bench, session.id, key="k")
    assert started.terminal.state is TerminalState.RUNNING


async def test_a_program_that_is_installed_meanwhile_is_found(bench: Bench) -> None:
    """It was looked for once, when the server started: only a restart helped."""
    session = ended(bench)
    found = find_templates()
    missing = tuple(replace(it, available=False, argv=()) for it in found)
    bench.parts.templates._find = lambda: missing
    assert isinstance(await refusal(bench, session.id), AgentNotFound)
    bench.parts.templates._find = lambda: found
    started = await resume(bench, session.id)
    assert started.terminal.state is TerminalState.RUNNING


async def test_what_cannot_be_taken_back_is_logged_without_its_path(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's files name conversations, and the log showed the error whole."""

    def finish(_: TerminalId) -> None:
        raise PermissionError(13, "Permission denied", f"/x/{CONVERSATION}")

    monkeypatch.setattr(bench.preparer, "finish", finish)
    started = await resume(bench, ended(bench).id)
    await bench.desk.close(started.terminal.id, actor=OWNER)
    assert "could not be taken back: Permission denied." in caplog.text
    assert CONVERSATION not in caplog.text


async def test_files_that_cannot_be_prepared_are_a_failed_start(bench: Bench) -> None:
    session = ended(bench)
    bench.preparer.error = PermissionError(13, "Permission denied")
    assert isinstance(await refusal(bench, session.id), StartFailed)


async def test_the_earlier_of_several_failing_checks_answers(bench: Bench) -> None:
    session = ended(bench, state=SessionState.IDLE, project_id=None, has_prompt=False)
    assert isinstance(await refusal(bench, session.id), OutsideSessionLive)
    session = ended(bench, project_id=None, has_prompt=False, directory_exists=False)
    assert str(await refusal(bench, session.id)).startswith("Not in a project")


async def test_ten_clients_at_once_get_one_process(bench: Bench) -> None:
    session = ended(bench)
    outcomes = await asyncio.gather(
        *(resume(bench, session.id) for _ in range(10)), return_exceptions=True
    )
    started = [each for each in outcomes if isinstance(each, Started)]
    refused = [each for each in outcomes if isinstance(each, OutsideResumeBusy)]
    assert (len(started), len(refused)) == (1, 9)
    assert len(bench.host.created) == 1


async def test_a_key_gives_the_same_terminal_and_a_fresh_ticket(bench: Bench) -> None:
    session = ended(bench)
    bench.host.gate.clear()
    first = asyncio.create_task(resume(bench, session.id, key="once"))
    await until_created(bench)
    second = asyncio.create_task(resume(bench, session.id, key="once"))
    bench.host.gate.set()
    one, two = await asyncio.gather(first, second)
    three = await resume(bench, session.id, key="once")
    assert one.terminal.id == two.terminal.id == three.terminal.id
    assert len({one.ticket.secret, two.ticket.secret, three.ticket.secret}) == 3
    assert len(bench.host.created) == 1


async def test_a_key_of_another_token_starts_nothing_and_admits_nobody(
    bench: Bench,
) -> None:
    """Whoever knew or guessed a key got the terminal, with a ticket to type into it."""
    session = ended(bench)
    await resume(bench, session.id, key="once")
    with pytest.raises(OutsideSessionResumed):
        await resume(bench, session.id, key="once", actor=replace(OWNER, token_id="t2"))


async def test_a_key_holds_for_every_process_of_the_owner(bench: Bench) -> None:
    session = ended(bench)
    local = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")
    one = await resume(bench, session.id, key="once", actor=local)
    again = await resume(
        bench, session.id, key="once", actor=replace(local, actor="local:2")
    )
    assert again.terminal.id == one.terminal.id


async def test_a_start_is_never_refused_for_its_ticket(bench: Bench) -> None:
    """The terminal ran, and the answer was RATE_LIMITED."""
    session = ended(bench)
    one = await resume(bench, session.id, key="once")
    issue = partial(
        bench.desk.issue_ticket, one.terminal.id, mode=TicketMode.VIEW, actor=OWNER
    )
    for _ in range(TOKEN_TICKETS_LIMIT - 1):  # one came with the start
        issue()
    with pytest.raises(RateLimited):
        issue()
    again = await resume(bench, session.id, key="once")
    assert bench.desk.spend_ticket(one.terminal.id, again.ticket.secret)
    with pytest.raises(TicketRefused):  # it made room, as the oldest of the token
        bench.desk.spend_ticket(one.terminal.id, one.ticket.secret)


async def test_a_key_with_another_input_is_refused(bench: Bench) -> None:
    session = ended(bench)
    await resume(bench, session.id, key="once")
    with pytest.raises(IdempotencyKeyReused):
        await resume(bench, session.id, key="once", cols=81)


async def test_check_0_comes_before_the_key(bench: Bench) -> None:
    session = ended(bench)
    await resume(bench, session.id, key="once")
    with pytest.raises(InvalidInput):
        await resume(bench, session.id, key="once", cols=0)


async def test_a_start_goes_on_when_its_client_hangs_up(bench: Bench) -> None:
    session = ended(bench)
    bench.host.gate.clear()
    asked = asyncio.create_task(resume(bench, session.id, key="once"))
    await until_created(bench)
    asked.cancel()
    bench.host.gate.set()
    started = await resume(bench, session.id, key="once")
    assert len(bench.host.created) == 1
    assert started.terminal.state is TerminalState.RUNNING


async def test_a_foreign_process_right_after_the_start_ends_ours(bench: Bench) -> None:
    session = ended(bench)
    bench.links.foreign = True
    with pytest.raises(ConversationTaken):
        await resume(bench, session.id)
    [(_, reason)] = bench.host.ended
    assert reason == "CONVERSATION_TAKEN"


def conflicting(bench: Bench, session: Session, terminal_id: TerminalId) -> None:
    conflict = SessionConflict(session.state_since, "Two processes write it.")
    bench.sessions.feed.upsert(
        replace(
            session,
            state=SessionState.IDLE,
            terminal_id=terminal_id,
            conflict=conflict,
        )
    )


async def test_a_foreign_process_later_ends_ours_if_nobody_typed(bench: Bench) -> None:
    session = ended(bench)
    started = await resume(bench, session.id)
    conflicting(bench, session, started.terminal.id)
    await until(lambda: bench.host.ended != [])
    await until(lambda: ended_by_host(bench, started.terminal.id))
    terminal = bench.desk.feed.get(started.terminal.id)
    assert terminal is not None
    assert terminal.end_reason == "CONVERSATION_TAKEN"


async def test_a_second_look_at_a_conflict_does_not_bring_an_ended_terminal_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote the row as it had been before, so that what had ended ran for ever."""
    session = ended(bench)
    started = await resume(bench, session.id)
    terminal_id = started.terminal.id
    asked: list[TerminalId] = []

    async def had_input(asked_id: TerminalId) -> bool:
        asked.append(asked_id)
        # The first answer ends the terminal; the second comes when that is known.
        if len(asked) > 1:
            await until(lambda: ended_by_host(bench, terminal_id))
        return False

    monkeypatch.setattr(bench.host, "had_input", had_input)
    starts = bench.desk._starts
    await asyncio.gather(
        starts.yield_if_untouched(started.terminal),
        starts.yield_if_untouched(started.terminal),
    )
    assert ended_by_host(bench, terminal_id)
    assert set(bench.host.ended) == {(terminal_id, "CONVERSATION_TAKEN")}
    [row], _ = await bench.store.load()
    assert row.terminal.state is TerminalState.EXITED


async def test_a_terminal_that_was_typed_into_stays(bench: Bench) -> None:
    session = ended(bench)
    started = await resume(bench, session.id)
    other = await start_shell(bench)
    bench.host.typed_into.add(started.terminal.id)
    conflicting(bench, session, started.terminal.id)
    # A second conflict, on a terminal nobody typed into, shows that the first was seen.
    conflicting(bench, make_session(conversation="other"), other)
    await until(lambda: bench.host.ended != [])
    assert bench.host.ended == [(other, "CONVERSATION_TAKEN")]


async def test_the_lock_follows_the_conversation_the_child_really_has(
    bench: Bench,
) -> None:
    session = ended(bench)
    started = await resume(bench, session.id)
    cleared = make_session(
        conversation="11111111-0000-4000-8000-000000000000",
        state=SessionState.IDLE,
        project_id=bench.project.id,
    )
    bench.add_session(replace(cleared, terminal_id=started.terminal.id))

    def linked() -> bool:
        terminal = bench.desk.feed.get(started.terminal.id)
        return terminal is not None and terminal.session_id == cleared.id

    await until(linked)
    held = bench.host.terminals[started.terminal.id].conversation_id
    assert held == cleared.origin.conversation_id


def ended_by_host(bench: Bench, terminal_id: TerminalId) -> bool:
    terminal = bench.desk.feed.get(terminal_id)
    return terminal is not None and terminal.state is TerminalState.EXITED


async def test_the_terminal_limit_is_said(bench: Bench) -> None:
    for _ in range(bench.parts.terminals_limit):
        await start_shell(bench)
    with pytest.raises(TerminalLimitReached, match="Close one first"):
        await start_shell(bench)


async def test_closing_makes_the_session_resumable_again(bench: Bench) -> None:
    session = ended(bench)
    started = await resume(bench, session.id)
    await bench.desk.close(started.terminal.id, actor=OWNER)
    assert bench.host.terminals == {}
    assert bench.preparer.finished == [started.terminal.id]
    assert bench.links.linked == set()
    again = await resume(bench, session.id)
    assert again.terminal.id != started.terminal.id


async def start_shell(bench: Bench) -> TerminalId:
    started = await bench.desk.start(
        project_id=bench.project.id,
        template=SHELL,
        name=None,
        cols=80,
        rows=24,
        idempotency_key=None,
        actor=OWNER,
    )
    return started.terminal.id


async def until_created(bench: Bench) -> None:
    await until(lambda: bench.host.created != [])
