"""Serves the built web client: its pages, its hashed files, GraphiQL's page.

Each file goes out with the policy that keeps the browser to this origin
(docs/security.md, "The web client"), and compressed as `scripts/build-client` left it.
"""

import asyncio
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from api.pages import NOT_BUILT

STATIC_FOLDER: Final = Path(__file__).parent / "static"
"""Where `scripts/build-client` puts the client; in a wheel it comes along."""

PAGES: Final = (
    "",
    "audit",
    "devices",
    "pair",
    "projects",
    "session",
    "settings",
    "terminal",
    "terminals",
    "wall",
)
"""The client's own addresses. One segment each: its files are named relative to it, so
that the client works below any path prefix, whether or not a proxy takes that off."""

_COMMON_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
)
# Inline styles: xterm.js and Monaco make style elements for what they draw.
CLIENT_POLICY: Final = (
    _COMMON_POLICY + "img-src 'self' data:; font-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types sidestage"
)
GRAPHIQL_POLICY: Final = _COMMON_POLICY + "img-src 'self' data:; font-src 'self' data:"
"""Without trusted types, which Monaco and React do not keep to."""

IMMUTABLE: Final = "public, max-age=31536000, immutable"
"""For files whose name holds their hash."""
REVALIDATED: Final = "no-cache"
HASHED_FOLDER: Final = "assets/"
HASHED_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", re.ASCII)
FILES: Final = (
    "icon-192.png",
    "icon-512.png",
    "icon.svg",
    "manifest.webmanifest",
    "sw.js",
)
"""What has the same name in every build."""
ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"), (None, ""))
"""The forms the build made, the smallest one first."""
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""What is served; a file of another kind is not."""


class WebClient:
    """The files below *folder*, looked up when they are asked for.

    So a build that replaces another is served at once, without a restart.
    """

    def __init__(self, folder: Path = STATIC_FOLDER) -> None:
        self._folder = folder

    def routes(self) -> list[BaseRoute]:
        """Return the client's addresses; all of them are open to everyone."""
        return [
            *(Route(f"/{name}", self.page) for name in PAGES),
            *(Route(f"/{name}", self._file) for name in FILES),
            Route(f"/{HASHED_FOLDER}{{name}}", self._file),
        ]

    async def page(self, request: Request) -> Response:
        """Answer with the client's one page, or how to build it."""
        return await self._page(request, "index.html", CLIENT_POLICY)

    async def graphiql(self, request: Request) -> Response:
        """Answer with GraphiQL's page, or how to build it."""
        return await self._page(request, "graphiql.html", GRAPHIQL_POLICY)

    async def _page(self, request: Request, name: str, policy: str) -> Response:
        answer = await self._answer(request, name, policy)
        return answer or Response(NOT_BUILT, media_type="text/html")

    async def _file(self, request: Request) -> Response:
        hashed = request.path_params.get("name")
        if hashed is not None and not HASHED_NAME.fullmatch(hashed):
            raise HTTPException(404)
        path = f"{HASHED_FOLDER}{hashed}" if hashed else _last_part(request)
        # A worker obeys the policy that its own script came with.
        answer = await self._answer(request, path, CLIENT_POLICY)
        if answer is None:
            raise HTTPException(404)
        return answer

    async def _answer(
        self, request: Request, name: str, policy: str
    ) -> Response | None:
        media_type = MEDIA_TYPES.get(Path(name).suffix)
        accepted = request.headers.get("accept-encoding", "")
        found = await asyncio.to_thread(_find_smallest, self._folder / name, accepted)
        if media_type is None or found is None:
            return None
        path, stat_result, encoding = found
        is_hashed = name.startswith(HASHED_FOLDER)
        headers = {
            "content-security-policy": policy,
            "cache-control": IMMUTABLE if is_hashed else REVALIDATED,
            "vary": "accept-encoding",
        }
        if encoding:
            headers["content-encoding"] = encoding
        return FileResponse(
            path, headers=headers, media_type=media_type, stat_result=stat_result
        )


def _last_part(request: Request) -> str:
    return request.url.path.rpartition("/")[2]


def _find_smallest(
    path: Path, accepted: str
) -> tuple[Path, os.stat_result, str | None] | None:
    """Return the smallest form of a file that the browser takes, if there is one."""
    offered = {part.partition(";")[0].strip() for part in accepted.split(",")}
    for encoding, suffix in ENCODINGS:
        if encoding is not None and encoding not in offered:
            continue
        form = path.with_name(path.name + suffix)
        with suppress(OSError):
            return form, form.stat(), encoding
    return None
