"""Host and Origin, before everything else (api.md, line 3; docs/security.md)."""

from functools import cache
from typing import Any

import httpx
import pytest

from api.guard import LOCAL_PRINCIPAL, allowed_for
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind
from tests.fakes.parts import BASE, PORT, World, make_world
from tests.fakes.socket_client import open_socket

ROUTES = ["/", "/graphql", "/healthz", "/readyz", "/metrics", "/session", "/nowhere"]
FOREIGN = "https://dashboard.example"


@cache
def a_world() -> World:
    return make_world(
        public_urls=("https://box.example/side", "http://box.example:8080"),
        allowed_origins=(FOREIGN,),
    )


async def request(
    world: World, method: str, path: str, *headers: tuple[str, str]
) -> httpx.Response:
    transport = httpx.ASGITransport(app=world.app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        built = client.build_request(method, path)
        if any(name == "host" for name, _ in headers):
            del built.headers["host"]
        built.headers = httpx.Headers([*built.headers.multi_items(), *headers])
        return await client.send(built)


BAD_HOSTS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.1",
    "localhost",
    f"127.0.0.1:{PORT + 1}",
    f"0.0.0.0:{PORT}",
    f"localhost.:{PORT}",
    f"user@127.0.0.1:{PORT}",
    f"127.1:{PORT}",
    f"[::]:{PORT}",
    "box.example:444",
    "box.example.",
    "x.box.example",
    "",
]
GOOD_HOSTS = [
    f"127.0.0.1:{PORT}",
    f"localhost:{PORT}",
    f"LOCALHOST:{PORT}",
    f"[::1]:{PORT}",
    "box.example",
    "box.example:443",
    "box.example:8080",
]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("host", BAD_HOSTS)
async def test_a_host_that_is_not_ours_is_refused_on_every_route(
    host: str, path: str
) -> None:
    """Starlette's TrustedHostMiddleware ignores the port; DNS rebinding passes it."""
    answer = await request(a_world(), "GET", path, ("host", host))
    assert answer.status_code == 400


@pytest.mark.parametrize("host", GOOD_HOSTS)
async def test_a_host_of_ours_is_served(host: str) -> None:
    answer = await request(a_world(), "GET", "/healthz", ("host", host))
    assert answer.status_code == 200


async def test_a_browser_at_the_root_is_told_what_this_is() -> None:
    ours = ("host", f"127.0.0.1:{PORT}")
    answer = await request(a_world(), "GET", "/", ours)
    assert answer.status_code == 200
    assert "scripts/build-client" in answer.text


async def test_two_hosts_are_refused() -> None:
    """With two `Host` headers the first would be checked and the second used."""
    ours = ("host", f"127.0.0.1:{PORT}")
    answer = await request(a_world(), "GET", "/healthz", ours, ours)
    assert answer.status_code == 400


BAD_ORIGINS = [
    "https://evil.example",
    "null",
    "",
    f"https://127.0.0.1:{PORT}",
    f"http://127.0.0.1:{PORT + 1}",
    f"http://localhost.evil.example:{PORT}",
    "http://127.0.0.1",
    "http://box.example",
    "https://box.example/",
    "https://box.example:8080",
    f"{FOREIGN}.evil.example",
    "http://dashboard.example",
    "https://dashboard.example:8443",
]
GOOD_ORIGINS = [
    f"http://127.0.0.1:{PORT}",
    f"http://localhost:{PORT}",
    f"http://[::1]:{PORT}",
    "https://box.example",
    "http://box.example:8080",
    FOREIGN,
]


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("origin", BAD_ORIGINS)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_an_origin_that_is_not_ours_is_refused_on_every_route(
    origin: str, path: str, method: str
) -> None:
    answer = await request(a_world(), method, path, ("origin", origin))
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("origin", GOOD_ORIGINS)
async def test_an_origin_of_ours_is_served(origin: str) -> None:
    answer = await request(a_world(), "GET", "/healthz", ("origin", origin))
    assert answer.status_code == 200


async def test_a_native_app_sends_no_origin_and_is_served() -> None:
    assert (await request(a_world(), "GET", "/healthz")).status_code == 200


async def test_two_origins_are_refused() -> None:
    ours = ("origin", f"http://127.0.0.1:{PORT}")
    answer = await request(a_world(), "GET", "/healthz", ours, ours)
    assert answer.status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_what_another_site_fetches_is_refused_but_a_link_may_be_followed(
    site: str,
) -> None:
    fetched = ("sec-fetch-site", site)
    page = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"))
    world = a_world()
    assert (await request(world, "GET", "/healthz", fetched)).status_code == 403
    assert (await request(world, "GET", "/healthz", fetched, *page)).status_code == 200
    assert (await request(world, "POST", "/healthz", fetched, *page)).status_code == 403
    frame = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe"))
    assert (await request(world, "GET", "/healthz", fetched, *frame)).status_code == 403
    same = ("sec-fetch-site", "same-origin")
    assert (await request(world, "GET", "/healthz", same)).status_code == 200
    allowed = ("origin", FOREIGN)
    assert (
        await request(world, "GET", "/healthz", fetched, allowed)
    ).status_code == 200


async def test_only_an_allowed_origin_gets_cors_answers() -> None:
    world = a_world()
    preflight = ("access-control-request-method", "POST")
    answer = await request(world, "OPTIONS", "/graphql", ("origin", FOREIGN), preflight)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == FOREIGN
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-private-network" not in answer.headers
    assert "access-control-allow-credentials" not in answer.headers
    answer = await request(world, "GET", "/healthz", ("origin", FOREIGN))
    assert answer.headers["access-control-allow-origin"] == FOREIGN
    assert answer.headers["vary"] == "Origin"
    own = ("origin", "https://box.example")
    answer = await request(world, "GET", "/healthz", own)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/graphql"])
async def test_every_answer_has_the_security_headers(path: str) -> None:
    for host in (f"127.0.0.1:{PORT}", "evil.example"):
        answer = await request(a_world(), "GET", path, ("host", host))
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/side/healthz", "/side/readyz", "/healthz"])
async def test_below_a_path_prefix_everything_still_works(path: str) -> None:
    """api.md, line 3; the proxy may or may not take the prefix off."""
    answer = await request(a_world(), "GET", path, ("host", "box.example"))
    assert answer.status_code == 200
    wrong = await request(a_world(), "GET", "/sideways/healthz")
    assert wrong.status_code == 404


async def refused_status(app: Any, *headers: tuple[bytes, bytes], **more: Any) -> int:
    async with open_socket(app, headers=headers, **more) as client:
        event = await client.next_event()
        if event["type"] == "websocket.close":
            return 403
        if event["type"] == "websocket.accept":
            return 101
        return int(event["status"])


RESPONSES: dict[str, Any] = {"websocket.http.response": {}}


async def test_a_foreign_page_gets_no_websocket() -> None:
    """Loopback trust once let any web page open a terminal's socket elsewhere."""
    app = a_world().app
    evil = (b"origin", b"https://evil.example")
    assert await refused_status(app, evil, extensions=RESPONSES) == 403
    assert await refused_status(app, evil) == 403
    assert await refused_status(app, (b"origin", b"null"), extensions=RESPONSES) == 403
    twice = (b"host", b"evil.example")
    assert await refused_status(app, twice, extensions=RESPONSES) == 400
    site = (b"sec-fetch-site", b"cross-site")
    assert await refused_status(app, site, extensions=RESPONSES) == 403
    ours = (b"origin", f"http://127.0.0.1:{PORT}".encode())
    assert await refused_status(app, ours, extensions=RESPONSES) == 101
    assert await refused_status(app, extensions=RESPONSES) == 101
    assert await refused_status(app, extensions=RESPONSES, path="/side/graphql") == 101


async def test_the_control_socket_skips_the_check() -> None:
    local = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")
    extensions = {LOCAL_PRINCIPAL: local, **RESPONSES}
    host = (b"host", b"control")
    assert await refused_status(a_world().app, host, extensions=extensions) == 101


def test_port_80_may_be_left_out() -> None:
    allowed = allowed_for(80, (), ())
    assert {"localhost", "localhost:80"} <= allowed.hosts
    assert "http://localhost" in allowed.origins


def test_an_ipv6_address_is_written_in_brackets() -> None:
    allowed = allowed_for(1, ("http://[fd00::1]:99/x",), ())
    assert "[fd00::1]:99" in allowed.hosts
    assert "http://[fd00::1]:99" in allowed.origins
    assert allowed.prefixes == ("/x",)
