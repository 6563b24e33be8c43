"""`sidestage serve` with a listener that writes down every hook event it is told.

    python -P listening_server.py --port 0

Events are lines of JSON in `<home>/events.jsonl`. A hook that waits is answered with
the JSON that somebody writes into the FIFO `<home>/decision`; until then it waits. It
is no test.
"""

import argparse
import asyncio
import json
import logging
import threading
from pathlib import Path

from api.server import serve
from api.wiring.seams import Seams
from sidestage.command.serve import announce
from sidestage.sessions.hooks import Hold, HookEvent
from sidestage.settings import read_settings


class Writer:
    """The listener."""

    def __init__(self, home: Path) -> None:
        self._events = home / "events.jsonl"
        self._decision = home / "decision"
        self._tasks: set[asyncio.Task[None]] = set()

    async def heard(self, event: HookEvent) -> None:
        """Write the event down."""
        self._write(event, claim=None)

    async def held(self, event: HookEvent, hold: Hold) -> None:
        """Write the event down, and answer it once there is a decision."""
        self._write(event, claim=hold.claim.hex())
        task = asyncio.create_task(self._decide(hold))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _write(self, event: HookEvent, *, claim: str | None) -> None:
        line = {
            "name": event.payload["hook_event_name"],
            "session": event.session_id,
            "pid": event.run.pid if event.run else None,
            "terminal": event.terminal_id,
            "subagent": event.is_from_subagent,
            "spooled": event.was_spooled,
            "claim": claim,
        }
        with self._events.open("a") as file:
            file.write(json.dumps(line) + "\n")

    async def _decide(self, hold: Hold) -> None:
        loop = asyncio.get_running_loop()
        read: asyncio.Future[str] = loop.create_future()

        def work() -> None:
            text = self._decision.read_text()
            loop.call_soon_threadsafe(read.set_result, text)

        # A daemon: a server that stops does not wait for a decision.
        threading.Thread(target=work, daemon=True).start()
        await hold.answer(json.loads(await read))


def main() -> None:
    """Serve as `sidestage serve` does, with the listener."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    settings = read_settings(vars(parser.parse_args()))
    logging.basicConfig(level=logging.WARNING)
    seams = Seams(hook_listeners=(Writer(settings.home),))
    asyncio.run(serve(settings, on_ready=announce, seams=seams))


if __name__ == "__main__":
    main()
