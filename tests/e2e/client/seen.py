"""A browser's page, and everything that must not happen in it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from tests.e2e.running_server import RunningServer

CHECKOUT: Final = Path(__file__).resolve().parents[3]
AXE: Final = CHECKOUT / "client-sample" / "node_modules" / "axe-core" / "axe.min.js"
PHONE: Final = {"width": 390, "height": 844}
NARROW: Final = {"width": 320, "height": 640}
TABLET: Final = {"width": 820, "height": 1180}
DESKTOP: Final = {"width": 1440, "height": 900}
TOUCHED: Final = (PHONE, NARROW)
TARGET_PX: Final = 44
TEXT_PX: Final = 12
_WATCH_POLICY: Final = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI}`));
"""
_SMALL_TARGETS: Final = """(limit) => [...document.querySelectorAll(
    "button, .button, select, summary, nav a, .row > a, label.check-field")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }))
  .map((each) => [each.getBoundingClientRect(), each.outerHTML.slice(0, 90)])
  .filter(([box]) => box.height > 0 && Math.min(box.width, box.height) < limit - 0.5)
  .map(([box, text]) => `${box.width}x${box.height} ${text}`)"""
_SMALL_TEXTS: Final = """(limit) => {
  const small = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim()) continue;
    if (!element.checkVisibility()) continue;
    if (parseFloat(getComputedStyle(element).fontSize) < limit) {
      small.add(element.outerHTML.slice(0, 90));
    }
  }
  return [...small];
}"""


class Seen:
    """A page whose errors, foreign requests and broken policies are collected."""

    def __init__(self, page: Page, server: RunningServer) -> None:
        self.page = page
        self.server = server
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.is_cut_off = False
        """Set while the server is away: a browser reports what it cannot reach."""
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note)
        page.add_init_script(_WATCH_POLICY)

    def log_in(self, token: str | None = None, path: str = "/") -> None:
        """Open the client with a token in its tab."""
        shown = json.dumps(token or self.server.token)
        script = f"sessionStorage.setItem('sidestage.token', {shown})"
        self.page.add_init_script(script)
        self.open(path)

    def open(self, path: str) -> None:
        """Go to a page of the client by its address."""
        self.page.goto(self.server.url + path)

    def check(self) -> None:
        """Fail for whatever must not have happened."""
        assert self.errors == []
        assert self.foreign == []
        assert self.page.evaluate("window.violations") == []

    def check_layout(self) -> None:
        """Fail for what overflows, and what is too small to read or to touch."""
        width = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{self.page.url} is {width} px too wide"
        assert self.page.evaluate(_SMALL_TEXTS, TEXT_PX) == []
        if self.page.viewport_size in TOUCHED:
            assert self.page.evaluate(_SMALL_TARGETS, TARGET_PX) == []

    def check_accessible(self) -> None:
        """Fail for what axe finds."""
        self.page.evaluate(AXE.read_text())
        found: dict[str, Any] = self.page.evaluate("axe.run()")
        wrong = [
            (each["id"], [node["html"][:120] for node in each["nodes"]])
            for each in found["violations"]
        ]
        assert wrong == [], f"{self.page.url}: {wrong}"

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not self.is_cut_off:
            self.errors.append(message.text)

    def _note(self, request: Request) -> None:
        if not request.url.startswith((self.server.url, "data:", "blob:")):
            self.foreign.append(request.url)


@contextmanager
def open_seen(
    browser: Browser,
    server: RunningServer,
    size: dict[str, int] | None = None,
    *,
    scheme: str = "light",
) -> Iterator[Seen]:
    """Give a page in a context of its own; check it at the end of the block."""
    size = size or DESKTOP
    context = browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme="dark" if scheme == "dark" else "light",
        has_touch=size in TOUCHED,
        is_mobile=size in TOUCHED,
        reduced_motion="reduce",
    )
    try:
        seen = Seen(context.new_page(), server)
        yield seen
        seen.check()
    finally:
        context.close()
