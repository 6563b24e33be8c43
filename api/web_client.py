"""Serves the built web client: its pages, its hashed files, GraphiQL's page.

The files are listed once, so no address can lead out of their folder. Each goes out
with the policy that keeps the browser to this origin (docs/security.md, "The web
client"), and compressed as `scripts/build-client` left it.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

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
ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
"""What the build compressed, the smaller one first."""
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
    """The files below *folder*, as they are when it is made."""

    def __init__(self, folder: Path = STATIC_FOLDER) -> None:
        paths = [path for path in folder.rglob("*") if path.is_file()]
        self._files = {path.relative_to(folder).as_posix(): path for path in paths}

    @property
    def is_built(self) -> bool:
        """Whether there is a client to serve."""
        return "index.html" in self._files

    def routes(self) -> list[BaseRoute]:
        """Return the client's addresses; all of them are open to everyone."""
        pages: list[BaseRoute] = [Route(f"/{name}", self.page) for name in PAGES]
        files = sorted(name for name in self._files if self._is_public(name))
        return pages + [Route(f"/{name}", self._file(name)) for name in files]

    async def page(self, request: Request) -> Response:
        """Answer with the client's one page, or how to build it."""
        return self._page(request, "index.html", CLIENT_POLICY)

    async def graphiql(self, request: Request) -> Response:
        """Answer with GraphiQL's page, or how to build it."""
        return self._page(request, "graphiql.html", GRAPHIQL_POLICY)

    def _is_public(self, name: str) -> bool:
        suffix = Path(name).suffix
        return suffix in MEDIA_TYPES and suffix != ".html"

    def _page(self, request: Request, name: str, policy: str) -> Response:
        if name not in self._files:
            return Response(NOT_BUILT, media_type="text/html")
        return self._answer(request, name, policy)

    def _file(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            # A worker obeys the policy that its own script came with.
            return self._answer(request, name, CLIENT_POLICY)

        return answer

    def _answer(self, request: Request, name: str, policy: str) -> Response:
        path, encoding = self._smallest(name, request.headers.get("accept-encoding"))
        is_hashed = name.startswith(HASHED_FOLDER)
        headers = {
            "content-security-policy": policy,
            "cache-control": IMMUTABLE if is_hashed else REVALIDATED,
            "vary": "accept-encoding",
        }
        if encoding:
            headers["content-encoding"] = encoding
        media_type = MEDIA_TYPES[Path(name).suffix]
        return FileResponse(path, headers=headers, media_type=media_type)

    def _smallest(self, name: str, accepted: str | None) -> tuple[Path, str | None]:
        offered = {
            part.partition(";")[0].strip() for part in (accepted or "").split(",")
        }
        for encoding, suffix in ENCODINGS:
            if encoding in offered and name + suffix in self._files:
                return self._files[name + suffix], encoding
        return self._files[name], None
