import { signal } from "@preact/signals";
import { serverUrl } from "../ui/base.ts";

const KEY = "sidestage.token";

/**
 * The token this tab shows, or null. A login by link or by pasting lies in
 * `sessionStorage`: it ends with the tab, and no other site can read it.
 */
export const token = signal<string | null>(sessionStorage.getItem(KEY));

/** What a person should know about the last login: why it failed, or why it ended. */
export const loginNotice = signal<string | null>(null);

export function keepToken(text: string): void {
  sessionStorage.setItem(KEY, text);
  loginNotice.value = null;
  token.value = text;
}

export function forgetToken(notice: string | null): void {
  sessionStorage.removeItem(KEY);
  loginNotice.value = notice;
  token.value = null;
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
