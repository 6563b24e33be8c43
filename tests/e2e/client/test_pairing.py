"""A browser becomes a device: by a link and a code, until it is revoked."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.e2e.client.seen import PHONE, Seen, open_seen
from tests.e2e.running_server import RunningServer

SLOW_MS = 20_000


def pair(owner: Page, phone: Seen) -> None:
    """Pair *phone*, with the owner's page open on Devices."""
    owner.get_by_role("button", name="Pair a device").click(timeout=SLOW_MS)
    owner.get_by_text("Or open the link there").click()
    phone.page.goto(owner.locator(".card .path").inner_text())
    # The secret must not stay where it can be read or shared.
    assert "#" not in phone.page.url
    phone.page.get_by_label("Name of this browser").fill("Ada’s phone")
    phone.page.get_by_role("button", name="Pair").click()
    shown = phone.page.locator(".code-shown")
    expect(shown).to_have_text(re.compile(r"^\d{6}$"), timeout=SLOW_MS)
    owner.get_by_label("The six digits it shows").fill(shown.inner_text())
    owner.get_by_role("button", name="Confirm").click()


def test_a_browser_is_paired_keeps_its_key_to_itself_and_is_revoked(
    browser: Browser, server: RunningServer
) -> None:
    with (
        open_seen(browser, server) as owner,
        open_seen(browser, server, PHONE) as phone,
    ):
        owner.log_in(path="/devices")
        pair(owner.page, phone)
        expect(phone.page.locator(".rows").first).to_be_visible(timeout=SLOW_MS)
        # A new tab of the same browser is logged in, without a token of its own.
        phone.open("/settings")
        expect(phone.page.locator("main")).to_contain_text("answer agents")
        assert phone.page.evaluate(EXPORTED) == "InvalidAccessError"
        devices = owner.page.locator(".rows")
        expect(devices).to_contain_text("Ada’s phone", timeout=SLOW_MS)
        phone.open("/")
        expect(phone.page.locator(".rows").first).to_be_visible(timeout=SLOW_MS)
        owner.page.on("dialog", lambda dialog: dialog.accept())
        owner.page.get_by_role("button", name="Revoke").click()
        phone.is_cut_off = True  # the browser reports the refused socket
        notice = phone.page.get_by_role("alert")
        expect(notice).to_contain_text("no longer paired", timeout=SLOW_MS)


def test_a_link_that_is_none_pairs_nothing(
    browser: Browser, server: RunningServer
) -> None:
    with open_seen(browser, server, PHONE) as phone:
        phone.open("/pair#1.AAAAAAAAAAAAAAAAAAAAAA.short")
        button = phone.page.get_by_role("button", name="Pair")
        expect(button).to_be_disabled()
        phone.page.get_by_label("Link").fill("https://host.example/pair#2.x.y")
        expect(button).to_be_disabled()


EXPORTED = """async () => {
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open("sidestage");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const identity = await new Promise((resolve) => {
    const request = database.transaction("keys").objectStore("keys").get("identity");
    request.onsuccess = () => resolve(request.result);
  });
  database.close();
  try {
    await crypto.subtle.exportKey("pkcs8", identity.deviceKey.privateKey);
    return "exported";
  } catch (error) {
    return error.name;
  }
}"""
