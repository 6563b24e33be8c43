"""One conversation as a live list: the corners that a feed's test does not reach."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from resolvers.transcript_view import TranscriptView
from sidestage.feeds import EndOfFeed
from sidestage.ids import SessionId
from sidestage.sessions.transcript import TranscriptUpdate
from tests.fakes.transcripts import FakeTranscripts
from tests.fakes.values import an_entry, session_id

ID = SessionId(session_id(1))


async def test_a_conversation_without_updates_is_empty_and_over() -> None:
    class Silent(FakeTranscripts):
        async def follow(self, *_: Any, **__: Any) -> AsyncIterator[TranscriptUpdate]:
            if self.follows:
                yield TranscriptUpdate(reset=False, entries=())

    view = TranscriptView(Silent(), ID)
    await view.open()
    assert (await view.snapshot()).upserts == ()
    with pytest.raises(EndOfFeed):
        await view.wait(view.position())
    await view.close()
    await view.close()


async def test_what_reading_raises_is_raised_to_who_waits() -> None:
    class Broken(FakeTranscripts):
        async def follow(self, *_: Any, **__: Any) -> AsyncIterator[TranscriptUpdate]:
            yield TranscriptUpdate(reset=False, entries=(an_entry(1),))
            raise OSError("gone")

    view = TranscriptView(Broken(), ID)
    await view.open()
    with pytest.raises(OSError, match="gone"):
        await view.wait(view.position())
    await view.close()


async def test_a_position_before_the_kept_entries_starts_anew() -> None:
    transcripts = FakeTranscripts()
    transcripts.put(ID, an_entry(0))
    view = TranscriptView(transcripts, ID)
    await view.open()
    start = view.position()
    for number in range(1, 1200):
        transcripts.put(ID, an_entry(number))
    while view.position().seqs[0] < 1200:
        await view.wait(view.position())
    assert await view.changes(start) is None
    await view.close()
