"""Every page at every size: legible, reachable, accessible, and only from here."""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.client.seen import (
    DESKTOP,
    NARROW,
    PHONE,
    TABLET,
    Seen,
    open_seen,
)
from tests.e2e.client.stage import LONG_NAME
from tests.e2e.running_server import RunningServer
from tests.e2e.test_serve import sidestage

FIRST_LOAD_BYTES = 250_000
TRIES = 6
TRY_MS = 4_000
PAGES = ("/", "/terminals", "/projects", "/devices", "/audit", "/settings", "/wall")
LOOKS = [
    pytest.param(PHONE, "light", id="phone-light"),
    pytest.param(PHONE, "dark", id="phone-dark"),
    pytest.param(NARROW, "light", id="narrow-light"),
    pytest.param(TABLET, "dark", id="tablet-dark"),
    pytest.param(DESKTOP, "light", id="desktop-light"),
    pytest.param(DESKTOP, "dark", id="desktop-dark"),
]


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_every_page_fits_and_is_accessible(
    browser: Browser, full: RunningServer, size: dict[str, int], scheme: str
) -> None:
    with open_seen(browser, full, size, scheme=scheme) as seen:
        check_logged_out(seen)
        seen.log_in()
        for path in PAGES:
            seen.open(path)
            settle(seen)
            seen.check_layout()
            seen.check_accessible()
        check_session(seen, "Mend the line reader")
        check_session(seen, LONG_NAME[:30])


def check_logged_out(seen: Seen) -> None:
    """Look at the pages that need no token."""
    for path in ("/", "/pair"):
        seen.open(path)
        expect(seen.page.locator("h1")).to_be_visible()
        seen.check_layout()
        seen.check_accessible()


def settle(seen: Seen) -> None:
    """Wait until nothing is loading any more."""
    expect(seen.page.locator("h1")).to_be_visible()
    expect(seen.page.locator(".loading")).to_have_count(0)


def check_session(seen: Seen, name: str) -> None:
    """Look at a session's page."""
    seen.open("/")
    seen.page.get_by_role("link", name=name).first.click()
    expect(seen.page.locator(".transcript")).to_be_visible()
    seen.page.get_by_text("Details", exact=True).click()
    seen.check_layout()
    seen.check_accessible()


def test_the_first_load_is_small(browser: Browser, full: RunningServer) -> None:
    with open_seen(browser, full) as seen:
        sizes: list[int] = []
        seen.page.on(
            "requestfinished",
            lambda request: sizes.append(request.sizes()["responseBodySize"]),
        )
        seen.log_in()
        expect(seen.page.locator(".rows").first).to_be_visible()
        assert sum(sizes) <= FIRST_LOAD_BYTES


def test_agents_words_are_text(browser: Browser, full: RunningServer) -> None:
    with open_seen(browser, full) as seen:
        seen.log_in()
        seen.page.get_by_role("link", name="Mend the line reader").click()
        transcript = seen.page.locator(".transcript")
        expect(transcript).to_contain_text('<script>alert("raw")</script>')
        expect(transcript.locator("img")).to_have_count(0)
        link = transcript.get_by_role("link", name="the docs")
        expect(link).to_have_attribute("rel", "noopener noreferrer")
        expect(transcript).to_contain_text("(example.com)")


def test_graphiql_explores_and_subscribes_under_its_policy(
    browser: Browser, full: RunningServer
) -> None:
    with open_seen(browser, full) as seen:
        seen.log_in(path="/graphql")
        page = seen.page
        page.get_by_role("button", name="Execute query").click()
        result = page.locator(".graphiql-response")
        expect(result).to_contain_text("outsideSessions", timeout=20_000)
        page.get_by_role("tab", name="FollowSessions").click()
        # GraphiQL reads a document some moments after it showed it.
        for _ in range(TRIES):
            page.get_by_role("button", name=re.compile("Execute|Stop")).click()
            with suppress(AssertionError):
                expect(result).to_contain_text("SNAPSHOT", timeout=TRY_MS)
                break
        expect(result).to_contain_text("SNAPSHOT")
        page.get_by_role("button", name="Show GraphiQL Explorer").click()
        explorer = page.locator(".graphiql-explorer-root")
        expect(explorer).to_contain_text("outsideSessionFeed")


def test_a_token_that_may_only_look_sees_states_and_no_words(
    browser: Browser, full: RunningServer
) -> None:
    token = sidestage(full, "token", "create", "wall").stdout.strip()
    with open_seen(browser, full) as seen:
        seen.log_in(token)
        row = seen.page.get_by_role("link", name="Mend the line reader")
        expect(row).to_be_visible()
        expect(row).not_to_contain_text("a test holds it to that")
        row.click()
        expect(seen.page.locator("main")).to_contain_text("no texts")
        seen.open("/wall")
        expect(seen.page.locator(".wall-number").first).to_contain_text("need you")
