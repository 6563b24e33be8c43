"""`/metrics`: what the server counts, in Prometheus's text format.

https://prometheus.io/docs/instrumenting/exposition_formats/
Counts and states alone: no id, no name, no path, no text of anybody. It takes a token
with the scope `VIEW`, which may see all counts anyway. Being on this machine is no
proof: behind a reverse proxy that runs here, the whole world is.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import psutil
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from api.broadcast import Broadcast
from api.connections import Connections
from api.errors import status_of
from api.guard import LOCAL_PRINCIPAL
from api.requests import authenticate, parse_bearer
from resolvers.parts import Parts
from sidestage.devices.model import Principal, Scope
from sidestage.errors import PermissionDenied, SidestageError
from sidestage.sessions.model import SessionState
from sidestage.terminals.model import TerminalState

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
HOOKS_TAKEN: Final = "hook_events_taken"
HOOK_MICROSECONDS: Final = "hook_handling_us"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its samples, by label or without."""

    name: str
    kind: str
    about: str
    samples: Mapping[str, float]
    """By the written labels, such as `{state="IDLE"}`; an empty text for none."""

    def lines(self) -> Iterator[str]:
        """Yield the metric's lines."""
        yield f"# HELP sidestage_{self.name} {self.about}"
        yield f"# TYPE sidestage_{self.name} {self.kind}"
        for labels, value in self.samples.items():
            yield f"sidestage_{self.name}{labels} {value:.10g}"


def metrics_endpoint(
    parts: Parts, connections: Connections, broadcast: Broadcast
) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler of the route."""

    async def metrics(request: Request) -> Response:
        try:
            _check_scope(await _caller(request, parts))
        except SidestageError as error:
            body = f"{error.code.value}: {error}\n"
            return PlainTextResponse(body, status_code=status_of(error.code))
        text = write_metrics(list_metrics(parts, connections, broadcast))
        return Response(text, media_type=CONTENT_TYPE)

    return metrics


async def _caller(request: Request, parts: Parts) -> Principal:
    local = request.scope.get("extensions", {}).get(LOCAL_PRINCIPAL)
    if isinstance(local, Principal):
        return local
    token = parse_bearer(request.headers.getlist("authorization"))
    address = request.client.host if request.client else None
    return await authenticate(parts.authenticator, token, address=address)


def _check_scope(principal: Principal) -> None:
    if not principal.may(Scope.VIEW):
        raise PermissionDenied("Metrics need a token with the scope VIEW.")


def write_metrics(metrics: Iterator[Metric]) -> str:
    """Return the text of *metrics*."""
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def list_metrics(
    parts: Parts, connections: Connections, broadcast: Broadcast
) -> Iterator[Metric]:
    """Yield every metric as it stands now."""
    yield from _of_the_product(parts)
    yield from _of_the_feeds(connections, broadcast)
    yield from _of_the_process()
    yield from _of_health(parts)


def _of_the_product(parts: Parts) -> Iterator[Metric]:
    # A version is our own word; it is checked all the same, as a label is quoted.
    version = re.sub(r"[^\w.+-]", "", parts.server.version)
    labels = f'{{version="{version}"}}'
    yield Metric("info", "gauge", "The server's version.", {labels: 1})
    sessions = Counter(str(row.state) for row in parts.sessions.feed.values())
    about = "Sessions in the list, by state."
    yield Metric("sessions", "gauge", about, _by_state(SessionState, sessions))
    terminals = Counter(str(row.state) for row in parts.terminals.feed.values())
    about = "Terminals in the list, by state."
    yield Metric("terminals", "gauge", about, _by_state(TerminalState, terminals))


def _by_state(
    states: type[SessionState] | type[TerminalState], counts: Mapping[str, int]
) -> dict[str, float]:
    return {f'{{state="{state}"}}': counts.get(state, 0) for state in states}


def _of_the_feeds(connections: Connections, broadcast: Broadcast) -> Iterator[Metric]:
    yield _plain("connections", "Open sockets and streams.", len(connections))
    yield _plain("feed_groups", "Different subscriptions that run.", len(broadcast))
    yield _plain("feed_members", "Subscribers of them.", broadcast.members)
    told = {
        "messages": "Messages encoded for all members of a group.",
        "merged": "Times a member that lagged got what it missed, merged.",
        "resets": "Times a member had to begin anew: too much had changed.",
    }
    for name, about in told.items():
        count = broadcast.counts[name]
        yield Metric(f"feed_{name}_total", "counter", about, {"": count})
    dropped = {f'{{reason="{reason}"}}': n for reason, n in connections.dropped.items()}
    about = "Connections that the server ended, by reason."
    yield Metric("connections_dropped_total", "counter", about, dropped)


def _of_the_process() -> Iterator[Metric]:
    process = psutil.Process(os.getpid())
    with process.oneshot():
        times = process.cpu_times()
        memory = process.memory_info().rss
        descriptors = process.num_fds()
        age = max(0.0, time.time() - process.create_time())
    cpu = {"": times.user + times.system}
    yield Metric("cpu_seconds_total", "counter", "Processor time used.", cpu)
    yield _plain("resident_memory_bytes", "Memory of the server.", memory)
    yield _plain("open_fds", "Open descriptors of the server.", descriptors)
    yield _plain("uptime_seconds", "Time since the server's start.", age)


def _of_health(parts: Parts) -> Iterator[Metric]:
    health = parts.server.health()
    yield _plain("ready", "Whether the first list is complete.", health.ready)
    yield _plain("healthy", "Whether nothing is amiss.", health.ok)
    counters = dict(health.counters)
    if HOOK_MICROSECONDS in counters:
        sum_and_count = {
            "_sum": counters.pop(HOOK_MICROSECONDS) / 1e6,
            "_count": float(counters.get(HOOKS_TAKEN, 0)),
        }
        about = "From a hook's event to its delivery."
        yield Metric("hook_handling_seconds", "summary", about, sum_and_count)
    for name, value in sorted(counters.items()):
        if _NAME.fullmatch(name):
            yield Metric(name, "untyped", "See `server.health.counters`.", {"": value})


def _plain(name: str, about: str, value: float) -> Metric:
    return Metric(name, "gauge", about, {"": value})
