"""The web client's files: what is served to whom, and under which policy."""

from pathlib import Path

import httpx
import pytest

from api.web_client import PAGES, WebClient
from tests.fakes.parts import BASE, make_world


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A built client of a few bytes, beside a file that is none of it."""
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("the client")
    (static / "graphiql.html").write_text("the explorer")
    (static / "assets" / "index-1a2b.js").write_text("plain")
    (static / "assets" / "index-1a2b.js.br").write_bytes(b"brotli")
    (static / "assets" / "index-1a2b.js.gz").write_bytes(b"gzip")
    (static / "sw.js").write_text("worker")
    (static / ".sidestage-build").write_text("1")
    (tmp_path / "secret.js").write_text("secret")
    return static


async def get(folder: Path, path: str, **headers: str) -> httpx.Response:
    world = make_world(
        web_client=WebClient(folder), public_urls=("https://box.example/side",)
    )
    app = world.app
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        async with client.stream("GET", path, headers=headers) as answer:
            content = b"".join([chunk async for chunk in answer.aiter_raw()])
        return httpx.Response(
            answer.status_code,
            headers={**answer.headers, "content-encoding": "identity"},
            content=content,
            extensions={"encoding": answer.headers.get("content-encoding")},
        )


@pytest.mark.parametrize("page", PAGES)
async def test_every_page_is_the_client_under_a_strict_policy(
    folder: Path, page: str
) -> None:
    answer = await get(folder, f"/{page}")
    assert answer.text == "the client"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "http" not in policy
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_browser_gets_graphiql_where_programs_get_the_api(folder: Path) -> None:
    answer = await get(folder, "/graphql", accept="text/html")
    assert answer.text == "the explorer"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("accepted", "encoding", "content"),
    [
        ("gzip, deflate, br", "br", b"brotli"),
        ("gzip;q=1.0", "gzip", b"gzip"),
        ("identity", None, b"plain"),
    ],
)
async def test_a_hashed_file_is_kept_for_ever_and_sent_as_it_was_compressed(
    folder: Path, accepted: str, encoding: str | None, content: bytes
) -> None:
    answer = await get(folder, "/assets/index-1a2b.js", **{"accept-encoding": accepted})
    assert answer.content == content
    assert answer.extensions["encoding"] == encoding
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["vary"] == "accept-encoding"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_the_worker_may_ask_this_server_and_nobody_else(folder: Path) -> None:
    answer = await get(folder, "/sw.js")
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/secret.js",
        "/../secret.js",
        "/assets/../../secret.js",
        "/assets/%2e%2e/%2e%2e/secret.js",
        "/assets/index-1a2b.js.br",
        "/.sidestage-build",
        "/index.html",
        "/nowhere",
    ],
)
async def test_nothing_else_is_served(folder: Path, path: str) -> None:
    answer = await get(folder, path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


async def test_without_a_build_the_pages_say_what_to_run(tmp_path: Path) -> None:
    for path in ("/", "/session", "/graphql"):
        answer = await get(tmp_path, path, accept="text/html")
        assert answer.status_code == 200
        assert "scripts/build-client" in answer.text


@pytest.mark.parametrize("path", ["/side/", "/side/session", "/session"])
async def test_a_path_prefix_may_be_left_on_or_taken_off(
    folder: Path, path: str
) -> None:
    answer = await get(folder, path, host="box.example")
    assert answer.text == "the client"


async def test_the_bare_prefix_leads_to_its_folder(folder: Path) -> None:
    """Without the slash the page's files, named relative to it, would be elsewhere."""
    answer = await get(folder, "/side", host="box.example")
    assert answer.status_code == 307
    assert answer.headers["location"].endswith("/side/")
