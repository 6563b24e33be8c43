"""Requests and questions of the real Claude Code, answered in a paired browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.client.seen import PHONE, Seen, open_seen
from tests.e2e.client.test_pairing import pair
from tests.e2e.real_claude import READY
from tests.e2e.requests.bench import RequestBench
from tests.waiting import wait_for

pytestmark = [pytest.mark.claude, pytest.mark.timeout(240)]

SLOW_MS = 45_000


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RequestBench]:
    with RequestBench.open(tmp_path_factory.mktemp("answering")) as bench:
        bench.server.register_project(bench.project)
        yield bench


@pytest.fixture
def paired(browser: Browser, bench: RequestBench) -> Iterator[Seen]:
    """Give a phone's browser that is paired and shows the board."""
    with (
        open_seen(browser, bench.server) as owner,
        open_seen(browser, bench.server, PHONE) as phone,
    ):
        owner.log_in(path="/devices")
        pair(owner.page, phone)
        expect(phone.page.locator("h1")).to_have_text("Sessions", timeout=SLOW_MS)
        yield phone


def open_asking(page: Page) -> None:
    """Open the one session that needs its person."""
    needs = page.locator(".group", has=page.locator(".group-needs"))
    needs.get_by_role("link").first.click(timeout=SLOW_MS)


def test_what_is_allowed_in_the_browser_runs(bench: RequestBench, paired: Seen) -> None:
    page = paired.page
    with bench.asking("stub:bash(touch seen)"):
        open_asking(page)
        card = page.locator(".request-open")
        expect(card).to_contain_text("touch seen", timeout=SLOW_MS)
        paired.check_layout()
        paired.check_accessible()
        card.get_by_role("button", name="Allow").click()
        wait_for(lambda: bench.made("seen"), "the tool runs")
        # Settled everywhere: the card goes, and the conversation goes on.
        expect(card).to_have_count(0, timeout=SLOW_MS)
        transcript = page.locator(".transcript")
        expect(transcript).to_contain_text("has been handled", timeout=SLOW_MS)


def test_a_question_is_answered_by_what_was_chosen(
    bench: RequestBench, paired: Seen
) -> None:
    page = paired.page
    with bench.asking("stub:askuser"):
        open_asking(page)
        card = page.locator(".request-open")
        expect(card.get_by_role("radio").first).to_be_visible(timeout=SLOW_MS)
        send = card.get_by_role("button", name="Answer")
        expect(send).to_be_disabled()
        card.get_by_role("radio").last.check()
        paired.check_accessible()
        send.click()
        expect(card).to_have_count(0, timeout=SLOW_MS)
        transcript = page.locator(".transcript")
        expect(transcript).to_contain_text("use your answer", timeout=SLOW_MS)


def test_a_turns_question_is_answered_and_its_draft_survives_a_reload(
    bench: RequestBench, paired: Seen
) -> None:
    page = paired.page
    with bench.claude.start(directory=bench.project) as terminal:
        terminal.wait_for(READY)
        terminal.send("stub:question")
        terminal.send("\r")
        idle = page.locator(".group", has=page.locator(".group-idle"))
        idle.get_by_role("link").first.click(timeout=SLOW_MS)
        box = page.get_by_label("Your answer")
        box.fill("/clear", timeout=SLOW_MS)
        expect(page.get_by_role("button", name="Send")).to_be_disabled()
        box.fill("The first one, please.")
        page.reload()
        expect(box).to_have_value("The first one, please.", timeout=SLOW_MS)
        paired.check_layout()
        paired.check_accessible()
        page.get_by_role("button", name="Send").click()
        arrived = page.get_by_text("Your answer arrived.")
        expect(arrived).to_be_visible(timeout=SLOW_MS)
        page.get_by_role("link", name="Go on reading").click()
        transcript = page.locator(".transcript")
        expect(transcript).to_contain_text("The first one, please.", timeout=SLOW_MS)
