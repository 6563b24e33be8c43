import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sidestage.agents.claude_code import library as library_module
from sidestage.agents.claude_code.folding import Fold
from sidestage.agents.claude_code.library import Transcript, TranscriptLibrary
from sidestage.agents.claude_code.scanning import END_BYTES, FileStamp, fold_whole
from sidestage.agents.claude_code.scanning import stamp_file as stamp
from sidestage.errors import StorageUnavailable
from sidestage.ids import ConversationId
from sidestage.sessions.index import NoTranscriptStore, StoredTranscript
from tests.fakes.agent_records import (
    CONVERSATION,
    answer,
    line,
    lines,
    prompt,
    text_block,
    write_transcript,
)
from tests.fakes.waiting import wait_for_row
from tests.unit.agents.claude_code.conftest import Opener, row_id, silent


class FailingStore(NoTranscriptStore):
    """A store that takes nothing while it is *full*, and counts who tries."""

    def __init__(self) -> None:
        self.full = True
        self.tries = 0
        self.saved: dict[str, StoredTranscript] = {}

    async def save(self, rows: Iterable[StoredTranscript]) -> None:
        self.tries += 1
        if self.full:
            raise StorageUnavailable("The disk is full.")
        self.saved |= {row.path: row for row in rows}

    async def forget(self, paths: Iterable[str]) -> None:
        self.tries += 1
        if self.full:
            raise StorageUnavailable("The disk is full.")
        for path in paths:
            self.saved.pop(path, None)


FILLER = line({"type": "api-request", "params": "x" * 1000}) * (END_BYTES // 400)


def library() -> tuple[TranscriptLibrary, list[ConversationId]]:
    changed: list[ConversationId] = []
    return TranscriptLibrary(NoTranscriptStore(), changed.extend), changed


async def filled(home: Path) -> TranscriptLibrary:
    made, _ = library()
    await made.open([home])
    return made


def found(made: TranscriptLibrary) -> Transcript:
    transcript = made.find(ConversationId(CONVERSATION))
    assert transcript is not None
    return transcript


async def test_a_full_disk_stops_no_discovery_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index stopped at the first row, and each try was a traceback in the log."""
    monkeypatch.setattr(library_module, "SAVE_LIMIT_ROWS", 2)
    for number in range(10):
        write_transcript(tmp_path, lines(prompt(1, None, "hi")) + FILLER, f"c{number}")
    store = FailingStore()
    changed = asyncio.Event()
    made = TranscriptLibrary(store, lambda _: changed.set())
    await made.open([tmp_path])
    indexing = asyncio.create_task(made.index())
    async with asyncio.timeout(5):
        while made.waiting_count:
            changed.clear()
            await changed.wait()
    await made.save()
    assert caplog.text.count("is stored later") == 1
    assert store.tries < 5
    gone = next(iter(made.transcripts))
    Path(gone).unlink()
    await made.rescan([tmp_path])
    await made.save()
    store.full = False
    await made.save()
    assert set(store.saved) == set(made.transcripts)
    assert len(store.saved) == 9
    indexing.cancel()
    await asyncio.wait({indexing})


async def test_a_large_addition_is_read_at_its_end_first(
    tmp_path: Path, discovery: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_module, "AT_ONCE_LIMIT_BYTES", 1000)
    path = write_transcript(tmp_path, lines(prompt(1, None, "hello")))
    async with discovery(tmp_path, notifier=silent) as opened:
        feed = opened.sessions.feed
        with path.open("ab") as file:
            file.write(FILLER + lines(answer(2, 1, text_block("the end"))))
        await opened.sessions.read_transcripts([(str(path), tmp_path)])
        session = feed.get(row_id())
        assert session is not None
        assert "the end" in str(session.last_message)
        assert session.usage is None
        session = await wait_for_row(feed, row_id(), lambda it: it.usage is not None)
        assert session.usage is not None
        assert session.usage.output_tokens == 5


async def test_transcripts_over_the_limit_are_left_out_the_oldest_first(
    tmp_path: Path, discovery: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidestage.agents.claude_code.library.TRANSCRIPT_LIMIT", 2)
    for number, name in enumerate(("old", "new", "newer")):
        path = write_transcript(tmp_path, lines(prompt(1, None, name)), name)
        os.utime(path, (number, number))
    async with discovery(tmp_path, notifier=silent) as opened:
        names = {session.name for session in opened.sessions.feed.values()}
        assert names == {"new", "newer"}
        counters = opened.sessions.health().counters
        assert counters["transcripts_left_out"] == 1
        late = write_transcript(tmp_path, lines(prompt(1, None, "late")), "late")
        await opened.sessions.read_transcripts([(str(late), tmp_path)])
        assert len(opened.sessions.feed.values()) == 2


async def test_what_is_known_better_is_not_replaced(tmp_path: Path) -> None:
    """The background finished an old reading after a newer one was taken in."""
    path = write_transcript(tmp_path, lines(prompt(1, None, "one")))
    made = await filled(tmp_path)
    old = found(made)
    with path.open("ab") as file:
        file.write(lines(prompt(2, 1, "two")))
    await made.changed([(str(path), tmp_path)])
    newer = found(made)
    assert newer.fold.last_text == "two"
    made._take(old)
    assert found(made) is newer
    ends = Transcript(newer.stamp, tmp_path, Fold(complete=False))
    made._take(ends)
    assert found(made) is newer


async def test_a_new_file_in_the_old_ones_place_is_another_file(tmp_path: Path) -> None:
    path = write_transcript(tmp_path, lines(prompt(1, None, "one")))
    made = await filled(tmp_path)
    other = tmp_path / "other"
    other.write_bytes(lines(prompt(1, None, "two")))
    other.rename(path)
    await made.changed([(str(path), tmp_path)])
    assert found(made).fold.first_prompt == "two"


async def test_files_that_go_while_they_are_read_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_transcript(tmp_path, lines(prompt(1, None, "one")))
    made = await filled(tmp_path)
    before = found(made)

    def went_away(*_: object) -> Any:
        raise FileNotFoundError

    with monkeypatch.context() as patch:
        patch.setattr(library_module, "fold_further", went_away)
        await made.changed([(str(path), tmp_path)])
        assert made._fold_anew(str(path)) is None
    assert found(made) is before
    path.unlink()
    assert made._fold_anew(str(path)) is None
    await made.changed([(str(path), tmp_path), (str(path), tmp_path)])
    assert made.find(ConversationId(CONVERSATION)) is None
    assert made.conversations() == set()


def test_a_stamp_tells_the_conversation(tmp_path: Path) -> None:
    path = write_transcript(tmp_path, lines(prompt(1, None, "one")))
    made = stamp(str(path))
    assert isinstance(made, FileStamp)
    assert made.conversation_id == CONVERSATION
    assert fold_whole(made).offset == made.size
