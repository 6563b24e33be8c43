from dataclasses import replace
from pathlib import Path

import pytest

from sidestage.sessions.index import StoredTranscript
from sidestage.storage.database import Database
from sidestage.storage.transcripts import SqlTranscriptStore

HUGE_INODE = 2**64 - 1


@pytest.fixture
async def database(tmp_path: Path) -> Database:
    return await Database.open(tmp_path / "sidestage.db")


def row(path: str = "/home/dev/.claude/projects/-p/a.jsonl") -> StoredTranscript:
    return StoredTranscript(path, HUGE_INODE, 10, 20, 5, b'{"format":1}')


async def test_a_saved_row_comes_back_as_it_was(database: Database) -> None:
    store = SqlTranscriptStore(database)
    odd = row("/home/\udcff/b.jsonl")  # a name that is no UTF-8
    await store.save([row(), odd])
    assert set(await store.load()) == {row(), odd}
    await database.close()


async def test_a_row_of_the_same_file_is_written_over(database: Database) -> None:
    store = SqlTranscriptStore(database)
    await store.save([row()])
    newer = replace(row(), size=99, offset=90)
    await store.save([newer])
    assert await store.load() == (newer,)
    await database.close()


async def test_forgotten_files_leave_no_row(database: Database) -> None:
    store = SqlTranscriptStore(database)
    await store.save([row(), row("/other.jsonl")])
    await store.forget(["/other.jsonl", "/never-there.jsonl"])
    assert await store.load() == (row(),)
    await database.close()
