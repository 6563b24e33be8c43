"""Who may speak to the server at all: exact Host and Origin, before everything else.

A web page can make a browser call `http://127.0.0.1:port`, and by DNS rebinding even
under its own name. So the Host must be one of ours, port included, and an Origin, where
there is one, too (docs/security.md, "Host and Origin"). Native apps send no Origin.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
PREFLIGHT_SECONDS: Final = 600
LOCAL_PRINCIPAL: Final = "sidestage.principal"
"""Set in `scope["extensions"]` for what comes over the control socket."""

SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The hosts, origins and path prefixes a server answers to."""

    hosts: frozenset[str]
    origins: frozenset[str]
    foreign_origins: frozenset[str]
    """Those of `allowed_origins`: they get CORS answers."""
    prefixes: tuple[str, ...]


def allowed_for(
    port: int, public_urls: Iterable[str], allowed_origins: Iterable[str]
) -> Allowed:
    """Return what a server on *port* answers to. No wildcards, on purpose."""
    hosts = {f"{name}:{port}" for name in LOOPBACK_NAMES}
    # A browser leaves out the port that its scheme implies.
    hosts |= {name for name in LOOPBACK_NAMES if port == DEFAULT_PORTS["http"]}
    origins = {f"http://{host}" for host in hosts}
    prefixes = []
    for url in public_urls:
        hosts |= _hosts_of(url)
        origins.add(_origin_of(url))
        prefixes.append(urlsplit(url).path.rstrip("/"))
    foreign = frozenset(_origin_of(url) for url in allowed_origins)
    return Allowed(
        frozenset(hosts),
        frozenset(origins) | foreign,
        foreign,
        tuple(sorted({prefix for prefix in prefixes if prefix}, key=len, reverse=True)),
    )


def _hosts_of(url: str) -> set[str]:
    parts = urlsplit(url)
    name = _bracketed(parts.hostname or "")
    default = DEFAULT_PORTS.get(parts.scheme)
    port = parts.port or default
    return {f"{name}:{port}"} | ({name} if port == default else set())


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    name = _bracketed(parts.hostname or "")
    if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)):
        return f"{parts.scheme}://{name}"
    return f"{parts.scheme}://{name}:{parts.port}"


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name


class Guard:
    """The outermost middleware, for HTTP and WebSocket alike."""

    def __init__(self, app: App, allowed: Callable[[], Allowed]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse with 400 (Host) or 403 (Origin), or pass on."""
        is_local = LOCAL_PRINCIPAL in scope.get("extensions", {})
        if scope["type"] not in ("http", "websocket") or is_local:
            await self._app(scope, receive, send)
            return
        allowed = self._allowed()
        headers = _Headers(scope)
        refused = _refusal(scope, headers, allowed)
        if refused:
            await _refuse(scope, send, *refused)
            return
        origin = headers.one("origin")
        cors = _cors(origin) if origin in allowed.foreign_origins else ()
        if cors and scope.get("method") == "OPTIONS":
            await _answer(send, 204, b"", (*cors, *_PREFLIGHT))
            return
        await self._app(_below_prefix(scope, allowed), receive, _with(send, cors))


class _Headers:
    """The headers of a scope, with every value of each."""

    def __init__(self, scope: Scope) -> None:
        self._values: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            self._values.setdefault(name.lower(), []).append(value.decode("latin-1"))

    def all(self, name: str) -> list[str]:
        return self._values.get(name.encode(), [])

    def one(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if len(values) == 1 else None


def _refusal(
    scope: Scope, headers: _Headers, allowed: Allowed
) -> tuple[int, bytes] | None:
    # Duplicates and absence are refused too: `one` is None then.
    if (headers.one("host") or "").lower() not in allowed.hosts:
        return 400, b"This is not a name of this server.\n"
    origins = headers.all("origin")
    if origins and (len(origins) > 1 or origins[0] not in allowed.origins):
        return 403, b"This origin may not call this server.\n"
    site = headers.all("sec-fetch-site")
    is_foreign = any(value in ("cross-site", "same-site") for value in site)
    is_allowed = bool(origins) and origins[0] in allowed.foreign_origins
    if is_foreign and not is_allowed and not _is_page_visit(scope, headers):
        return 403, b"Another site may not call this server.\n"
    return None


def _is_page_visit(scope: Scope, headers: _Headers) -> bool:
    """Tell whether a person followed a link here: a top-level GET of a page."""
    return (
        scope.get("method") == "GET"
        and headers.one("sec-fetch-mode") == "navigate"
        and headers.one("sec-fetch-dest") == "document"
    )


def _below_prefix(scope: Scope, allowed: Allowed) -> Scope:
    """Take a public URL's path prefix off, when the proxy before us left it on."""
    path = scope["path"]
    for prefix in allowed.prefixes:
        if path == prefix or path.startswith(f"{prefix}/"):
            return {**scope, "root_path": prefix}
    return scope


def _cors(origin: str | None) -> tuple[tuple[bytes, bytes], ...]:
    assert origin is not None, "an allowed origin is a string"
    return (
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"vary", b"Origin"),
        # Read by another origin, unlike everything else of ours.
        (b"cross-origin-resource-policy", b"cross-origin"),
    )


_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, accept, sidestage-client",
    ),
    (b"access-control-max-age", str(PREFLIGHT_SECONDS).encode()),
)


def _with(send: Send, extra: tuple[tuple[bytes, bytes], ...]) -> Send:
    """Return a *send* that adds the security headers, *extra* first."""

    async def send_with_headers(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *extra]
            present = {name.lower() for name, _ in headers}
            headers += [each for each in SECURITY_HEADERS if each[0] not in present]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_headers


async def _refuse(scope: Scope, send: Send, status: int, text: bytes) -> None:
    if scope["type"] == "http":
        await _answer(send, status, text, ())
    elif "websocket.http.response" in scope.get("extensions", {}):
        await _answer(send, status, text, (), prefix="websocket.http.response")
    else:
        # Before the upgrade a close is answered as 403 by the server.
        await send({"type": "websocket.close", "code": 1008})


async def _answer(
    send: Send,
    status: int,
    text: bytes,
    extra: tuple[tuple[bytes, bytes], ...],
    *,
    prefix: str = "http.response",
) -> None:
    headers = [(b"content-length", str(len(text)).encode()), *extra]
    if text:
        headers.append((b"content-type", b"text/plain; charset=utf-8"))
    present = {name for name, _ in headers}
    headers += [each for each in SECURITY_HEADERS if each[0] not in present]
    await send({"type": f"{prefix}.start", "status": status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": text})
