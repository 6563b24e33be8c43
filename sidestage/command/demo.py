"""`sidestage demo`: everything at work, without an agent or an account."""

import argparse
import asyncio
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from sidestage.command.failure import CommandFailed
from sidestage.command.own_name import write_command
from sidestage.demo.scenes import FOLDERS
from sidestage.demo.stage import Stage, act, open_stage
from sidestage.settings import read_settings

START_PATIENCE_SECONDS: Final = 60.0
"""From the server's start to its address; it takes a second on an idle machine."""
STOP_PATIENCE_SECONDS: Final = 15.0
"""A stop of the server ends within ten seconds."""
ENDED_LOOK_SECONDS: Final = 0.1
_PEER: Final = struct.Struct("3i")
"""pid, uid and gid of a Unix socket's peer (unix(7), SO_PEERCRED)."""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="show everything at work with scripted agents",
        description="Starts a server on a scratch home, with scripted agents that "
        "work, ask, wait and end. No agent and no account is needed, and nothing of "
        "yours is touched. Ctrl-C ends it all and removes the scratch home.",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="default: a free one the system picks"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play until stopped."""
    asyncio.run(_demonstrate(arguments.port))
    sys.stderr.write("The demonstration is over; its scratch home is removed.\n")
    return 0


async def _demonstrate(port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_stage() as stage, _open_server(stage, port) as (server, url):
        await _prepare(stage)
        sys.stdout.write(_welcome(stage, url))
        sys.stdout.flush()
        playing = asyncio.create_task(act(stage))
        ends = (playing, asyncio.create_task(server.wait()))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({*ends, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ends, stopping):
                task.cancel()
            await asyncio.gather(*ends, stopping, return_exceptions=True)
    if not stop.is_set():
        raise CommandFailed("The demonstration's server ended by itself.")


@asynccontextmanager
async def _open_server(
    stage: Stage, port: int
) -> AsyncGenerator[tuple[asyncio.subprocess.Process, str]]:
    """Run a server of the stage; end it, its terminals and their host at the end."""
    server = await asyncio.create_subprocess_exec(
        *_sidestage(),
        *("serve", "--port", str(port), *_sandbox_options()),
        env=stage.environment() | {"SIDESTAGE_DEMO": "true"},
        cwd=stage.home,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(START_PATIENCE_SECONDS):
            url = await _read_url(server)
        yield server, url
    except TimeoutError as error:
        raise CommandFailed("The demonstration's server did not answer.") from error
    finally:
        await _end(server)
        await asyncio.to_thread(_end_host, stage.state_dir)


async def _read_url(server: asyncio.subprocess.Process) -> str:
    assert server.stdout is not None, "it is a pipe"
    while line := await server.stdout.readline():
        if line.startswith(b"http://"):
            return line.decode().strip()
    raise CommandFailed("The demonstration's server did not start; it said why above.")


async def _end(server: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        server.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_PATIENCE_SECONDS):
            # Its pipe is read to the end, or it might wait for us to read.
            await server.communicate()
    except TimeoutError:
        server.kill()
        await server.wait()


def _end_host(state_dir: Path) -> None:
    """End the terminal host, which outlives servers; its terminals end with it."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(state_dir / "host.sock"))
        except OSError:
            return
        peer = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        descriptor = os.pidfd_open(_PEER.unpack(peer)[0])
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        with suppress(TimeoutError):
            _wait_for_exit(descriptor)
    finally:
        os.close(descriptor)


def _wait_for_exit(descriptor: int) -> None:
    import select

    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    ended.poll(STOP_PATIENCE_SECONDS * 1000)


async def _prepare(stage: Stage) -> None:
    for name in FOLDERS[:-1]:  # the last one shows what an unregistered folder is
        await _tell(stage, "projects", "add", str(stage.folder(name)))
    await _tell(stage, "hooks", "install")


async def _tell(stage: Stage, *words: str) -> None:
    telling = await asyncio.create_subprocess_exec(
        *_sidestage(),
        *words,
        env=stage.environment(),
        cwd=stage.home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await telling.communicate()
    if telling.returncode:
        raise CommandFailed(f"The demonstration cannot be prepared: {said.decode()}")


def _sidestage() -> Sequence[str]:
    return (sys.executable, "-P", "-m", "sidestage")


def _sandbox_options() -> Sequence[str]:
    """Return how the scripted agent's terminals run where there is no sandbox."""
    if shutil.which("bwrap") is None:
        return ("--no-sandbox",)
    works = subprocess.run(
        ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"],
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if works.returncode:
        return ("--no-sandbox",)
    return ("--allow-root",) if os.geteuid() == 0 else ()


def _welcome(stage: Stage, url: str) -> str:
    settings = read_settings({"state_dir": str(stage.state_dir)})

    def write(words: str) -> str:
        return write_command(settings, words)

    return f"""\
This is a demonstration: scripted agents on a scratch home. Nothing in it is real.
{url}
The admin token lies in {settings.admin_token_file}

In another terminal:
  {write("sessions --watch")}
      what the agents do, live
  {write("open")}
      the web client, logged in
  {write("pair")}
      pair a phone or a browser, so that it can answer them

Stop with Ctrl-C; everything is removed then.
"""
