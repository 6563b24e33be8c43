"""Logins follow each other while terminals run."""

import asyncio
import contextlib
import logging
import re
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
    inside = start_terminal(files, "terminal:1", home)
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


def start_terminal(files: ClaudePrivateFiles, name: str, home: Path) -> Path:
    """Make a terminal's private files; return its login."""
    files.prepare(
        terminal_id=TerminalId(name), directory=home, config_dir=None, transcript=None
    )
    return files.terminals_dir / name / "config/.credentials.json"


async def test_a_terminal_that_starts_later_is_followed(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    outside = home / ".claude/.credentials.json"
    home.mkdir(parents=True)
    files = Told(state_dir=tmp_path / "state", home=home)
    async with asyncio.TaskGroup() as tasks:
        # Its state folder does not exist yet either.
        watching = tasks.create_task(watch_logins(files, [outside.parent]))
        await files.looked.wait()
        inside = await asyncio.to_thread(start_terminal, files, "terminal:2", home)
        await pass_on(files, outside, inside, make_login(1))
        await pass_on(files, inside, outside, make_login(2))
        watching.cancel()


async def test_folders_made_inside_take_none_of_the_user_s_watches(
    tmp_path: Path,
) -> None:
    """A program inside made 202,500 folders, and every file watch of the user was gone.

    All folders below `terminals/` were watched.
    """
    home = tmp_path.resolve() / "home"
    home.mkdir()
    files = Told(state_dir=tmp_path / "state", home=home)
    config = start_terminal(files, "terminal:3", home).parent
    (config / "made/inside").mkdir(parents=True)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch_logins(files, []))
        await files.looked.wait()
        (config / "later").mkdir()
        files.looked.clear()
        (config / ".credentials.json").write_text(make_login(1))
        await files.looked.wait()
        watched = watched_inodes()
        watching.cancel()
    assert config.stat().st_ino in watched
    made = [path for path in config.rglob("*") if path.is_dir()]
    assert len(made) == 3
    assert watched.isdisjoint(path.stat().st_ino for path in made)


def watched_inodes() -> frozenset[int]:
    """Return the inodes this process watches (proc(5), "fdinfo")."""
    texts: list[str] = []
    for info in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            texts.append(info.read_text())
    found = re.findall(r"\binotify wd:.* ino:([0-9a-f]+) ", "\n".join(texts))
    return frozenset(int(inode, 16) for inode in found)


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
