"""Logins follow each other while terminals run."""

import asyncio
import contextlib
import logging
from pathlib import Path

from sidestage.agents.claude_code import login_watch
from sidestage.agents.claude_code.login_watch import watch_logins
from sidestage.agents.claude_code.private_files import ClaudePrivateFiles
from sidestage.ids import TerminalId
from tests.fakes.logins import make_login


class Told(ClaudePrivateFiles):
    """Tells when it has looked."""

    def __init__(self, *, state_dir: Path, home: Path) -> None:
        super().__init__(state_dir=state_dir, home=home)
        self.loop = asyncio.get_running_loop()
        self.looked = asyncio.Event()

    def sync_logins(self) -> None:
        super().sync_logins()
        self.loop.call_soon_threadsafe(self.looked.set)


async def test_a_refresh_on_either_side_is_passed_on(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    outside = home / ".claude/.credentials.json"
    outside.parent.mkdir(parents=True)
    files = Told(state_dir=tmp_path / "state", home=home)
    files.prepare(
        terminal_id=TerminalId("terminal:1"),
        directory=home,
        config_dir=None,
        transcript=None,
    )
    inside = files.terminals_dir / "terminal:1/config/.credentials.json"
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch_logins(files, [outside.parent, home / "no"]))
        await files.looked.wait()
        for number, (here, there) in enumerate([(inside, outside), (outside, inside)]):
            await pass_on(files, here, there, make_login(number))
        watching.cancel()


async def pass_on(files: Told, here: Path, there: Path, login: str) -> None:
    """Write *login* here and wait until it is there."""
    async with asyncio.timeout(10):
        while not there.exists() or there.read_text() != login:
            files.looked.clear()
            # Again, should the watch not have stood yet.
            here.write_text(login)
            await files.looked.wait()


async def test_a_full_disk_does_not_end_the_watch(tmp_path: Path) -> None:
    class Full(Told):
        def sync_logins(self) -> None:
            raise OSError(28, "No space left on device")

    class Warned(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.set_result(record.getMessage())

    warned: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    log, handler = logging.getLogger(login_watch.__name__), Warned()
    log.addHandler(handler)
    files = Full(state_dir=tmp_path / "state", home=tmp_path)
    watching = asyncio.create_task(watch_logins(files, []))
    async with asyncio.timeout(10):
        assert "No space left on device" in await warned
    log.removeHandler(handler)
    assert not watching.done()
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
