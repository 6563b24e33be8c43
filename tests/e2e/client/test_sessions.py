"""The board and the terminals, live: over changes, restarts and reloads."""

from playwright.sync_api import Browser, Page, expect

from tests.e2e.client.seen import PHONE, open_seen
from tests.e2e.client.stage import Stage
from tests.e2e.running_server import RunningServer
from tests.e2e.test_serve import sidestage

SLOW_MS = 20_000


def test_a_link_logs_in_once(browser: Browser, server: RunningServer) -> None:
    link = sidestage(server, "open", "--print").stdout.strip()
    with open_seen(browser, server) as seen:
        seen.page.goto(link)
        expect(seen.page.locator(".rows").first).to_be_visible(timeout=SLOW_MS)
        assert "ticket" not in seen.page.url
        seen.page.reload()
        expect(seen.page.locator(".rows").first).to_be_visible(timeout=SLOW_MS)
    with open_seen(browser, server) as seen:
        seen.is_cut_off = True  # the browser reports the 401
        seen.page.goto(link)
        expect(seen.page.get_by_role("alert")).to_contain_text("sidestage open")


def test_the_board_follows_a_session_through_its_life(
    browser: Browser, server: RunningServer, stage: Stage
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        expect(page.locator(".group-ended")).to_be_visible(timeout=SLOW_MS)
        agent = stage.start("atlas-api", "Sweep the floor", "stub:bash(ls)")
        needs = page.locator(".group", has=page.locator(".group-needs"))
        expect(needs).to_contain_text("Sweep the floor", timeout=SLOW_MS)
        expect(needs).to_contain_text("Wants to use Bash")
        expect(page).to_have_title("(1) Sidestage")
        agent.send("1")
        idle = page.locator(".group", has=page.locator(".group-idle"))
        expect(idle).to_contain_text("Sweep the floor", timeout=SLOW_MS)
        agent.send("/exit\r")
        ended = page.locator(".group", has=page.locator(".group-ended"))
        expect(ended).to_contain_text("Sweep the floor", timeout=SLOW_MS)
        expect(page).to_have_title("Sidestage")


def test_search_and_project_narrow_the_board(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        rows = page.locator(".row")
        expect(rows).to_have_count(3, timeout=SLOW_MS)
        page.get_by_role("searchbox").fill("LINE reader")
        expect(rows).to_have_count(1)
        page.get_by_role("searchbox").fill("nothing like it")
        expect(page.locator(".empty")).to_contain_text("None of the 3 sessions")
        page.get_by_role("searchbox").fill("")
        page.get_by_role("combobox").select_option("storefront")
        expect(rows).to_have_count(1)


def test_a_conversation_pages_back_to_its_beginning(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        page.get_by_role("link", name="Rework the very long").click()
        transcript = page.locator(".transcript")
        expect(transcript).to_contain_text("Step 69 is done.", timeout=SLOW_MS)
        expect(transcript).not_to_contain_text("Step 3:")
        for _ in range(2):
            entries = page.locator(".entry")
            before = entries.count()
            page.get_by_role("button", name="Show earlier").click()
            expect(entries).not_to_have_count(before)
        expect(page.locator(".entry")).to_have_count(140, timeout=SLOW_MS)
        expect(transcript).to_contain_text("Step 0: go on, please.")
        expect(page.get_by_role("button", name="Show earlier")).to_have_count(0)


def test_an_open_board_says_that_it_is_old_and_mends_itself_after_a_restart(
    browser: Browser, server: RunningServer, stage: Stage
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        expect(page.locator(".row")).to_have_count(3, timeout=SLOW_MS)
        seen.is_cut_off = True
        server.stop()
        expect(page.locator(".bar")).to_contain_text("Offline since", timeout=SLOW_MS)
        # What was known stays readable meanwhile.
        expect(page.locator(".row")).to_have_count(3)
        stage.start("field-notes", "Begun while nobody looked", "hello")
        server.start()
        page.get_by_role("button", name="Try now").click(timeout=SLOW_MS)
        expect(page.locator(".bar")).to_have_count(0, timeout=SLOW_MS)
        board = page.locator("main")
        expect(board).to_contain_text("Begun while nobody looked", timeout=SLOW_MS)
        expect(page.locator(".row")).to_have_count(4)


def open_terminal(page: Page, name: str) -> None:
    """Resume a session from its page."""
    page.get_by_role("link", name=name).click()
    page.get_by_role("button", name="Resume").click(timeout=SLOW_MS)
    screen = page.locator(".xterm-rows")
    expect(screen).to_contain_text("It reads all records now", timeout=SLOW_MS)


def test_a_session_is_resumed_and_typed_into(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server, PHONE) as seen:
        seen.log_in()
        page = seen.page
        open_terminal(page, "Mend the line reader")
        page.keyboard.type("thank you")
        page.get_by_role("button", name="Enter").click()
        screen = page.locator(".xterm-rows")
        expect(screen).to_contain_text("Stub answer to: thank you", timeout=SLOW_MS)
        seen.check_accessible()
        page.get_by_role("button", name="Back").click()
        transcript = page.locator(".transcript")
        expect(transcript).to_contain_text("Stub answer to: thank you", timeout=SLOW_MS)
        expect(page.get_by_role("link", name="Open its terminal")).to_be_visible()


def test_an_open_terminal_comes_back_after_a_restart_without_a_reload(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        open_terminal(page, "Mend the line reader")
        screen = page.locator(".xterm-rows")
        page.keyboard.type("before\r")
        expect(screen).to_contain_text("Stub answer to: before", timeout=SLOW_MS)
        seen.is_cut_off = True
        server.stop()
        status = page.locator(".terminal-status")
        expect(status).to_contain_text("The server is away", timeout=SLOW_MS)
        expect(screen).to_contain_text("Stub answer to: before")
        server.start()
        expect(status).to_be_empty(timeout=SLOW_MS)
        page.locator(".xterm").click()
        page.keyboard.type("after\r")
        expect(screen).to_contain_text("Stub answer to: after", timeout=SLOW_MS)
        assert screen.inner_text().count("Stub answer to: before") == 1


def test_a_closed_terminal_says_so_to_who_looks_on(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        open_terminal(page, "Mend the line reader")
        page.keyboard.type("/exit\r")
        status = page.locator(".terminal-status")
        expect(status).to_contain_text("has ended", timeout=SLOW_MS)
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="End this terminal").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=SLOW_MS)


def test_what_cannot_be_resumed_says_why_in_one_line(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server) as seen:
        seen.log_in()
        page = seen.page
        page.get_by_role("link", name="What does this error mean?").click()
        reason = "Not in a project, so it can't be resumed."
        expect(page.locator(".reason")).to_have_text(reason, timeout=SLOW_MS)
        expect(page.get_by_role("button", name="Resume")).to_have_count(0)
