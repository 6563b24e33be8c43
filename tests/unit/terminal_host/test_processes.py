"""Whose a process is, by the kernel's table; and how a host's notes are read."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.ids import TerminalId
from terminal_host.host.leftovers import (
    FILE_NAME,
    Leftover,
    find_leftovers,
    remove_leftover,
    write_leftover,
)
from terminal_host.host.processes import (
    ProcessKey,
    ProcessStat,
    boot_id,
    exit_status,
    find_family,
    find_stat,
    parse_stat,
    terminal_mark,
)

ROOT = ProcessKey(10, 1000)


def process(
    pid: int, parent: int, session: int, *, started: int = 2000, zombie: bool = False
) -> ProcessStat:
    return ProcessStat(ProcessKey(pid, started), parent, session, zombie)


def table(*stats: ProcessStat) -> dict[int, ProcessStat]:
    return {stat.key.pid: stat for stat in stats}


def pids(keys: set[ProcessKey]) -> set[int]:
    return {key.pid for key in keys}


def test_a_name_with_parentheses_and_spaces_does_not_shift_the_fields() -> None:
    rest = " ".join(str(n) for n in range(7, 22))
    stat = parse_stat(f"42 (a) b (c) S 1 2 3 4 5 6 {rest} 777 99 0")
    assert stat.key.pid == 42
    assert (stat.parent, stat.session, stat.zombie) == (1, 3, False)


def test_this_very_process_is_found_with_its_start() -> None:
    stat = find_stat(os.getpid())
    assert stat is not None
    assert stat.parent == os.getppid()
    assert stat.session == os.getsid(0)
    assert stat.key.start_ticks > 0
    assert find_stat(2**22 + 1) is None


def test_a_family_is_the_root_its_session_and_all_below() -> None:
    found = find_family(
        table(
            process(10, 1, 10, started=1000),
            process(11, 10, 10),
            process(12, 11, 12),  # in a session of its own
            process(13, 1, 10),  # an orphan of the session
            process(20, 1, 20),
            process(21, 20, 20),
        ),
        {ROOT},
    )
    assert pids(found) == {10, 11, 12, 13}


def test_a_dead_roots_session_is_still_its_family() -> None:
    found = find_family(table(process(13, 1, 10), process(14, 13, 14)), {ROOT})
    assert pids(found) == {13, 14}


def test_a_pid_and_session_given_out_anew_are_no_family() -> None:
    anew = table(process(10, 1, 10, started=5000), process(11, 10, 10, started=5001))
    assert find_family(anew, {ROOT}) == set()


def test_strays_bring_their_children_but_not_their_session() -> None:
    stray = process(30, 1, 29)
    found = find_family(
        table(stray, process(31, 30, 31), process(32, 1, 29)), {ROOT}, {stray.key}
    )
    assert pids(found) == {30, 31}


def test_zombies_are_not_signalled_but_their_children_are_found() -> None:
    found = find_family(
        table(process(10, 1, 10, started=1000, zombie=True), process(11, 10, 11)),
        {ROOT},
    )
    assert pids(found) == {11}


@pytest.mark.parametrize(("wait_status", "status"), [(0, 0), (7 << 8, 7), (15, 143)])
def test_a_signal_counts_from_128(wait_status: int, status: int) -> None:
    assert exit_status(wait_status) == status


def test_a_process_without_the_variable_has_no_mark() -> None:
    assert terminal_mark(os.getpid()) is None
    assert terminal_mark(2**22 + 1) is None


def test_what_a_host_wrote_down_is_found_by_the_next(tmp_path: Path) -> None:
    leftover = Leftover(TerminalId("terminal:1"), ROOT, boot_id())
    folder = tmp_path / "terminal:1"
    write_leftover(folder, leftover)
    assert find_leftovers(tmp_path) == (leftover,)
    assert folder.stat().st_mode & 0o777 == 0o700
    remove_leftover(folder)
    assert not folder.exists()
    remove_leftover(folder)  # twice is fine


def test_a_folder_that_others_use_stays(tmp_path: Path) -> None:
    folder = tmp_path / "terminal:1"
    write_leftover(folder, Leftover(TerminalId("terminal:1"), ROOT, boot_id()))
    (folder / "claude.json").write_text("{}")
    remove_leftover(folder)
    assert [path.name for path in folder.iterdir()] == ["claude.json"]


def test_notes_of_another_boot_mean_nothing(tmp_path: Path) -> None:
    write_leftover(tmp_path / "t", Leftover(TerminalId("t"), ROOT, "another boot"))
    assert find_leftovers(tmp_path) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x"}', "\xff" * 10])
def test_a_damaged_note_counts_as_absent(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / FILE_NAME).write_text(text)
    good = Leftover(TerminalId("good"), ROOT, boot_id())
    write_leftover(tmp_path / "good", good)
    assert find_leftovers(tmp_path) == (good,)


def test_a_note_is_replaced_whole(tmp_path: Path) -> None:
    for start_ticks in (1, 2):
        key = ProcessKey(5, start_ticks)
        write_leftover(tmp_path, Leftover(TerminalId("t"), key, "boot"))
    assert json.loads((tmp_path / FILE_NAME).read_text())["start_ticks"] == 2
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("text", ["", "1 (a) S", "1 (a) S 1 2 3", "(a) S 1", "1 a S"])
def test_a_line_cut_short_is_no_line(text: str) -> None:
    """It was an `IndexError`, which nobody expects."""
    with pytest.raises(ValueError, match=r".+"):
        parse_stat(text)


WORDS = st.sampled_from(["1", "22", "(a)", "((", ") (", "S", "Z", "x", "-1", "1_0"])


@given(st.one_of(st.text(), st.lists(WORDS, max_size=40).map(" ".join)))
def test_any_line_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(parse_stat(text), ProcessStat)
