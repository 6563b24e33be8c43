import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sidestage.devices.host_keys import GRACE, HostKeys
from sidestage.errors import StateFolderUnsafe
from sidestage.ids import HostId

HOST = HostId("host:1")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def load(path: Path, clock: Clock) -> HostKeys:
    keys = HostKeys(path, HOST, clock=clock)
    await keys.load()
    return keys


async def test_the_key_is_made_once_for_its_owner_alone(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "host-key"
    first = await load(path, clock)
    again = await load(path, clock)
    assert again.current.secret == first.current.secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_file_that_others_can_read_is_refused(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "host-key"
    await load(path, clock)
    path.chmod(0o640)
    with pytest.raises(StateFolderUnsafe, match="chmod 600"):
        await load(path, clock)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"current": 1}',
        '{"current": "AAAA"}',
        '{"previous": {}}',
        f'{{"current": "{"A" * 43}", "previous": {{"key": "{"A" * 43}"}}}}',
        f'{{"current": "{"A" * 43}", "previous": 7}}',
    ],
)
async def test_a_damaged_file_is_told_and_never_replaced(
    tmp_path: Path, clock: Clock, text: str
) -> None:
    path = tmp_path / "host-key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(StateFolderUnsafe, match="damaged"):
        await load(path, clock)
    assert path.read_text() == text


async def test_the_key_before_stays_in_grace_for_a_week_also_after_a_restart(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "host-key"
    keys = await load(path, clock)
    old = keys.current
    await keys.rotate(keep_previous=True)
    clock.now += GRACE - timedelta(seconds=1)
    again = await load(path, clock)
    secrets = [key.secret for key in again.identity.keys]
    assert secrets == [keys.current.secret, old.secret]
    assert again.previous is not None


async def test_after_its_grace_the_key_before_is_erased(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "host-key"
    keys = await load(path, clock)
    await keys.rotate(keep_previous=True)
    with_previous = path.read_text()
    clock.now += GRACE
    assert len(keys.identity.keys) == 1
    await keys.forget_expired()
    assert "previous" in with_previous
    assert "previous" not in path.read_text()


async def test_a_compromised_key_is_erased_at_once(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "host-key"
    keys = await load(path, clock)
    old = path.read_text()
    await keys.rotate(keep_previous=False)
    assert len(keys.identity.keys) == 1
    assert "previous" not in path.read_text()
    assert path.read_text() != old


def test_keys_that_were_not_loaded_are_a_mistake(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(RuntimeError):
        _ = HostKeys(tmp_path / "host-key", HOST, clock=clock).current
