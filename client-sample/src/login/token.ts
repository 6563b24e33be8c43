import { computed, signal } from "@preact/signals";
import { forgetIdentity, identity } from "../keys/identity.ts";
import { serverUrl } from "../ui/base.ts";

const KEY = "sidestage.token";

/**
 * A login by link or by pasting. It lies in `sessionStorage`: it ends with the tab, and
 * no other site can read it.
 */
const tabToken = signal<string | null>(sessionStorage.getItem(KEY));

/** The token this tab shows: the tab's own, else the paired browser's; null without. */
export const token = computed(() => tabToken.value ?? identity.value?.token ?? null);

/** What a person should know about the last login: why it failed, or why it ended. */
export const loginNotice = signal<string | null>(null);

export function keepToken(text: string): void {
  sessionStorage.setItem(KEY, text);
  loginNotice.value = null;
  tabToken.value = text;
}

/** Logs this tab out; a paired browser goes on as its device. */
export function forgetTabToken(): void {
  sessionStorage.removeItem(KEY);
  tabToken.value = null;
}

/** Acts on a token that the server does not take any more. */
export function tokenRefused(): void {
  if (tabToken.peek() !== null) {
    loginNotice.value = "You were logged out: the login expired or was revoked.";
    forgetTabToken();
  } else if (identity.peek() !== null) {
    loginNotice.value = "This browser is no longer paired: it was revoked. Pair it again to go on.";
    void forgetIdentity();
  }
}

/** Takes the ticket of a `sidestage open` link out of the address; null without one. */
export function takeTicket(): string | null {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  // Before anything else: history and screen shares must not keep it.
  if (ticket !== null) history.replaceState(null, "", location.pathname + location.search);
  return ticket;
}

/** Turns a ticket into a token for this tab; tells in `loginNotice` if that fails. */
export async function spendTicket(ticket: string): Promise<void> {
  try {
    const response = await fetch(serverUrl("browser-login"), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ticket }),
    });
    const answer = (await response.json()) as { token?: string; message?: string };
    if (answer.token) keepToken(answer.token);
    else loginNotice.value = answer.message ?? "The server did not accept the link.";
  } catch {
    loginNotice.value = "The server does not answer. Is it running?";
  }
}
