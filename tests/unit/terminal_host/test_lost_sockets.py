"""The companion WebSocket of a terminal whose host went away."""

import asyncio
from dataclasses import replace

import pytest

from sidestage.errors import TerminalNotFound
from terminal_host.host_messages import Attached
from tests.unit.terminal_host.test_gateway import Set, attached, stage

__all__ = ["stage"]


def lost(cols: int = 80, rows: int = 24, *, repaint: int = 4) -> Attached:
    made = attached(offset=9, repaint=repaint, running=False)
    return replace(made, lost=True, cols=cols, rows=rows)


async def test_a_lost_terminal_is_asked_for_at_the_clients_own_size(
    stage: Set,
) -> None:
    stage.host.answers = [lost(50, 20)]
    client = stage.serve(ticket="VIEW", cols=50, rows=20)
    assert (await client.message("attached"))["state"] == "LOST"
    assert (await client.message("repaint"))["cols"] == 50
    assert (stage.host.requests[0].cols, stage.host.requests[0].rows) == (50, 20)


async def test_a_resize_brings_the_screen_anew_once_the_first_one_is_whole(
    stage: Set,
) -> None:
    """A repaint that broke off would leave its client waiting for the rest."""
    stage.host.answers = [lost(50, 20), lost(61, 20)]
    client = stage.serve(ticket="CONTROL", cols=50, rows=20)
    await client.message("repaint")
    stage.host.ends[0].sendall(b"dr")
    assert (await client.next())["bytes"] == bytes(7) + b"\x09dr"
    client.say(type="resize", cols=60, rows=20)
    client.say(type="claim", cols=61, rows=20)
    client.say(type="ping")
    await client.message("pong")  # the sizes were taken note of
    assert len(stage.host.requests) == 1
    stage.host.ends[0].sendall(b"aw")
    assert (await client.next())["bytes"] == bytes(7) + b"\x09aw"
    repaint = await client.message("repaint")
    assert (repaint["cols"], repaint["rows"]) == (61, 20)
    request = stage.host.requests[1]
    assert (request.cols, request.rows, request.after) == (61, 20, None)
    assert stage.host.sizes == []


async def test_input_goes_nowhere_and_decides_nothing(stage: Set) -> None:
    stage.host.answers = [lost()]
    client = stage.serve(ticket="CONTROL", cols=80, rows=24)
    await client.message("repaint")
    stage.host.ends[0].sendall(b"draw")
    await client.next()
    client.type(b"rm -r /\r")
    client.say(type="ping")
    await client.message("pong")
    stage.host.ends[0].settimeout(0.05)
    with pytest.raises(TimeoutError):
        stage.host.ends[0].recv(100)
    assert stage.host.sizes == []
    assert client.sent.empty(), "no word of who owns a size"


async def test_a_viewer_still_may_not_type(stage: Set) -> None:
    stage.host.answers = [lost()]
    client = stage.serve(ticket="VIEW")
    await client.message("repaint")
    client.type(b"x")
    assert await client.close_code() == 4409


async def test_closing_a_lost_terminal_ends_its_sockets(stage: Set) -> None:
    stage.host.answers = [lost(), TerminalNotFound("It was closed.")]
    client = stage.serve(ticket="VIEW")
    await client.message("repaint")
    stage.host.ends[0].close()
    assert await client.close_code() == 4404


async def test_a_client_that_had_seen_more_than_was_recorded_is_told_of_no_gap(
    stage: Set,
) -> None:
    stage.host.answers = [replace(lost(), offset=700)]
    client = stage.serve(ticket="VIEW", after=700)
    messages = [(await client.next()).get("text") or "" for _ in range(3)]
    assert '"attached"' in messages[1]
    assert '"repaint"' in messages[2]
    client.say(type="ack", offset=700)
    client.say(type="ping")
    await asyncio.wait_for(client.message("pong"), 5)
