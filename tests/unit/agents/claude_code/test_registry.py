import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidestage.agents.claude_code.live import check_liveness, is_foreign
from sidestage.agents.claude_code.registry import (
    is_registry_file,
    parse_registry,
    read_registry,
)
from sidestage.sessions.evidence import Liveness
from sidestage.sessions.model import Process
from tests.fakes.agent_records import registry
from tests.fakes.json_values import damaged
from tests.fakes.processes import DOMAIN, FakeProcesses

TIMELINE = Path(__file__).parents[1] / "data" / "claude" / "sessions-timeline.jsonl"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("14781.json", True),
        ("14781.041ff3f4525d.key", False),
        ("14781.041ff3f4525d.key.tmp.3810f35f", False),
        ("14781.json.tmp", False),
        ("abc.json", False),
        ("-1.json", False),
    ],
)
def test_only_registry_files_are_read_and_no_keys(name: str, wanted: bool) -> None:
    assert is_registry_file(name) is wanted


def test_an_entry_tells_process_conversation_and_status() -> None:
    values = registry(
        7,
        "70",
        DOMAIN,
        status="waiting",
        waitingFor="input needed",
        statusUpdatedAt=1e12,
    )
    entry = parse_registry(json.dumps(values).encode())
    assert entry is not None
    assert entry.process == Process(7, "70")
    assert (entry.status, entry.waiting_for) == ("waiting", "input needed")
    assert entry.status_at == datetime.fromtimestamp(1e9, UTC)
    assert entry.name is None


@pytest.mark.parametrize(
    ("entrypoint", "headless"),
    [("cli", False), ("sdk-cli", True), ("sdk-py", True), (None, False), (5, False)],
)
def test_a_run_that_a_program_drives_shows_no_dialog(
    entrypoint: object, *, headless: bool
) -> None:
    values = registry(7, "70", DOMAIN, entrypoint=entrypoint)
    entry = parse_registry(json.dumps(values).encode())
    assert entry is not None
    assert entry.is_headless is headless


def test_only_a_persons_name_counts_as_a_title() -> None:
    named = registry(7, "70", DOMAIN, name="mine", nameSource="user")
    entry = parse_registry(json.dumps(named).encode())
    assert entry is not None
    assert entry.name == "mine"


@pytest.mark.parametrize("pid", ["7", 0, -1, 1 << 40, True, 7.5, None])
def test_an_entry_without_a_real_pid_is_none(pid: object) -> None:
    values = registry(7, "70", DOMAIN) | {"pid": pid}
    entry = parse_registry(json.dumps(values).encode())
    assert entry is None or entry.process.pid == 1  # True is 1 in JSON's Python


@given(st.integers(0, 600))
def test_a_torn_entry_is_none_and_never_half_an_entry(cut: int) -> None:
    data = json.dumps(registry(7, "70", DOMAIN)).encode()
    entry = parse_registry(data[:cut])
    assert entry is None or cut >= len(data)


@given(st.binary(max_size=100))
def test_no_bytes_upset_the_parser(data: bytes) -> None:
    parse_registry(data)
    parse_registry(b'{"pid":1,"sessionId":"x","startedAt":' + data + b"}")


@pytest.mark.parametrize("moment", [1e300, -1e300, float("nan"), "soon", True])
def test_impossible_times_are_none(moment: object) -> None:
    values = registry(7, "70", DOMAIN) | {"startedAt": moment}
    entry = parse_registry(json.dumps(values).encode())
    assert entry is not None
    assert entry.started_at is None


def test_an_unreadable_file_is_no_entry(tmp_path: Path) -> None:
    assert read_registry(tmp_path / "1.json") is None
    assert read_registry(tmp_path) is None
    large = tmp_path / "2.json"
    large.write_text(json.dumps(registry(2, "2", DOMAIN)) + " " * 100_000)
    assert read_registry(large) is None


@pytest.mark.parametrize(
    ("domain", "foreign"),
    [
        (DOMAIN, False),
        (None, False),
        (DOMAIN.replace("4026531836", "4026532999"), True),
        # The first namespace has the same inode on every machine.
        (DOMAIN.replace("linux:0", "linux:1"), True),
        ("linux:pid", True),
        ("", True),
    ],
)
def test_a_domain_is_foreign_by_machine_or_namespace(
    domain: str | None, foreign: bool
) -> None:
    assert is_foreign(domain, DOMAIN) is foreign


def test_without_a_machine_id_the_namespace_decides() -> None:
    ours = "linux::pid:[4026531836]"
    assert not is_foreign(DOMAIN, ours)
    assert is_foreign("linux:x:pid:[1]", ours)


@pytest.mark.parametrize(
    ("ticks", "fields", "wanted"),
    [
        ({7: "70"}, {}, Liveness.ALIVE),
        ({}, {}, Liveness.GONE),
        ({7: "71"}, {}, Liveness.GONE),  # the pid was given to another process
        ({7: "70"}, {"procStart": ""}, Liveness.GONE),
        ({7: "70"}, {"pidDomain": "linux:1:pid:[2]"}, Liveness.UNKNOWN),
        ({}, {"pidDomain": "linux:1:pid:[2]"}, Liveness.UNKNOWN),
        # Written before this machine started: the same numbers are a coincidence.
        ({7: "70"}, {"startedAt": 1_600_000_000_000}, Liveness.GONE),
        (
            {7: "70"},
            {"startedAt": 1_600_000_000_000, "updatedAt": 1_796_000_000_000},
            Liveness.ALIVE,
        ),
    ],
)
def test_a_process_lives_only_if_everything_fits(
    ticks: dict[int, str], fields: dict[str, object], wanted: Liveness
) -> None:
    entry = parse_registry(json.dumps(registry(7, "70", DOMAIN) | fields).encode())
    assert entry is not None
    assert check_liveness(entry, FakeProcesses(ticks)) is wanted


def test_a_failed_probe_says_nothing() -> None:
    entry = parse_registry(json.dumps(registry(7, "70", DOMAIN)).encode())
    assert entry is not None
    assert check_liveness(entry, FakeProcesses(broken=True)) is None


@given(st.integers(1, 600), st.integers(1, 600))
def test_a_doubled_entry_is_none(first: int, second: int) -> None:
    """A file that is rewritten in place may be read with the rest of another."""
    data = json.dumps(registry(7, "70", DOMAIN)).encode()
    assert parse_registry(data[:first] + data) is None
    assert parse_registry(data + data[:second]) is None


@given(damaged(registry(7, "70", DOMAIN, startedAt=1e12, name="x")))
def test_a_damaged_entry_is_one_or_none(values: dict[str, object]) -> None:
    data = json.dumps(values).encode()
    entry = parse_registry(data)
    assert entry is None or entry.process.pid > 0
    assert parse_registry(data + data) is None
