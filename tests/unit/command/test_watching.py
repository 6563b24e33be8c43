"""`sidestage sessions --watch`: what gets a line, and going on after a restart."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sidestage.command.failure import CommandFailed, ServerGone
from sidestage.command.watching import Watched, follow
from sidestage.settings import Settings, read_settings

Json = dict[str, Any]
A, B = ("outside:" + two * 16 for two in ("a1", "b2"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings(environment={"HOME": str(tmp_path)})


def row(row_id: str, **more: object) -> Json:
    values: Json = {
        "id": row_id,
        "name": "fix the bug",
        "state": "RUNNING",
        "directory": "/srv/p",
        "waitingFor": None,
        "lastActivityAt": "2026-11-30T12:00:00Z",
    }
    return values | more


def message(kind: str, *upserts: Json, more: bool = False, gone: str = "") -> Json:
    return {
        "kind": kind,
        "cursor": f"{kind}-cursor",
        "more": more,
        "upserts": list(upserts),
        "removedIds": [gone] if gone else [],
    }


def told(watched: Watched, each: Json) -> list[str]:
    # Without the time, which comes first.
    return [" ".join(line.plain.split()[1:]) for line in watched.take(each)]


def test_a_line_shows_state_name_folder_and_id() -> None:
    watched = Watched()
    asking = row(A, state="ASKING", waitingFor={"kind": "PERMISSION", "label": ""})
    assert told(watched, message("SNAPSHOT", asking)) == [
        "asking permission fix the bug /srv/p a1a1a1a1"
    ]


def test_a_change_that_no_column_shows_gets_no_line() -> None:
    """Every new time of activity printed the same line once more."""
    watched = Watched()
    told(watched, message("SNAPSHOT", row(A)))
    later = row(A, lastActivityAt="2026-11-30T12:00:01Z")
    assert told(watched, message("DELTA", later)) == []
    assert told(watched, message("DELTA", row(A, state="IDLE"))) == [
        "idle fix the bug /srv/p a1a1a1a1"
    ]


def test_a_removed_row_is_told_once_by_name() -> None:
    watched = Watched()
    told(watched, message("SNAPSHOT", row(A)))
    assert told(watched, message("DELTA", gone=A)) == [
        "gone fix the bug /srv/p a1a1a1a1"
    ]
    assert told(watched, message("DELTA", gone=A)) == []


def test_a_new_snapshot_tells_what_changed_and_what_it_lacks() -> None:
    watched = Watched()
    told(watched, message("SNAPSHOT", row(A), row(B)))
    assert told(watched, message("RESET")) == []
    assert told(watched, message("SNAPSHOT", row(B), more=True)) == []
    assert told(watched, message("SNAPSHOT")) == ["gone fix the bug /srv/p a1a1a1a1"]


class Server:
    """Answers subscriptions one after another as prepared."""

    def __init__(self, *answers: list[Json | Exception]) -> None:
        self._answers = iter(answers)
        self.cursors: list[object] = []

    async def subscribe(
        self, settings: Settings, document: str, variables: Mapping[str, Any]
    ) -> AsyncGenerator[Json]:
        del settings, document
        self.cursors.append(variables["after"])
        for each in next(self._answers):
            if isinstance(each, Exception):
                raise each
            yield {"outsideSessionFeed": each}


async def test_after_a_restart_it_goes_on_behind_what_it_had(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """A restart of the server ended the watch."""
    server = Server(
        [message("SNAPSHOT"), ServerGone("restart")],
        [ServerGone("not yet")],
        [ServerGone("not yet")],
        [message("DELTA"), CommandFailed("enough")],
    )
    messages = follow(settings, {}, subscribe=server.subscribe, retry_seconds=0)
    seen = [(await anext(messages))["kind"] for _ in range(2)]
    with pytest.raises(CommandFailed, match="enough"):
        await anext(messages)
    assert seen == ["SNAPSHOT", "DELTA"]
    assert server.cursors == [None, *["SNAPSHOT-cursor"] * 3]
    assert capsys.readouterr().err == "The server went away. Waiting for it.\n"


async def test_a_server_that_never_answered_is_not_waited_for(
    settings: Settings,
) -> None:
    server = Server([ServerGone("No server answers.")])
    messages = follow(settings, {}, subscribe=server.subscribe)
    with pytest.raises(ServerGone, match="No server answers"):
        await anext(messages)
