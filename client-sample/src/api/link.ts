import { signal } from "@preact/signals";
import { type Client, createClient } from "graphql-ws";
import { token, tokenRefused } from "../login/token.ts";
import { socketUrl } from "../ui/base.ts";
import { CLIENT } from "../version.ts";

/** What a person may know of the connection. */
export type LinkState =
  | { kind: "connecting" }
  | { kind: "online" }
  | { kind: "offline"; since: number; busy: boolean }
  | { kind: "too-old" };

/** The state of the one WebSocket that carries every feed. */
export const linkState = signal<LinkState>({ kind: "connecting" });

/** When the server was heard last, in milliseconds since 1970. */
export const lastHeardAt = signal(0);

/** Feeds send a heartbeat every 20 s, and we ping: twice that in silence is a dead line. */
const SILENCE_LIMIT_MS = 45_000;
const PING_MS = 15_000;
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 15_000;
/** Close codes after which the same attempt cannot succeed (docs/api.md). */
const UNAUTHENTICATED = 4401;
const FATAL = new Set([4400, UNAUTHENTICATED, 4406, 4409, 4429, 4500, 1009]);

let client: Client | null = null;
let wake: (() => void) | null = null;

/** Returns the connection, which opens with the first feed and stays. */
export function link(): Client {
  client ??= openLink();
  return client;
}

/** Closes the connection; the next feed opens another. */
export function closeLink(): void {
  void client?.dispose();
  client = null;
  linkState.value = { kind: "connecting" };
}

function openLink(): Client {
  return createClient({
    url: socketUrl("graphql"),
    lazy: false,
    connectionParams: () => ({ token: token.peek(), client: CLIENT }),
    keepAlive: PING_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: waitToRetry,
    shouldRetry: (event) => !FATAL.has(closeCode(event)),
    // Fatal closes are told by `closed`; there is nobody else to tell.
    onNonLazyError: () => {},
    on: {
      connected: () => {
        hear();
        linkState.value = { kind: "online" };
      },
      message: hear,
      closed: (event) => showClosed(closeCode(event)),
    },
  });
}

function hear(): void {
  lastHeardAt.value = Date.now();
}

function closeCode(event: unknown): number {
  return typeof event === "object" && event !== null && "code" in event
    ? Number(event.code)
    : 0;
}

function showClosed(code: number): void {
  if (code === UNAUTHENTICATED) {
    tokenRefused();
  } else if (FATAL.has(code)) {
    linkState.value = { kind: "too-old" };
  } else if (linkState.peek().kind !== "offline") {
    linkState.value = { kind: "offline", since: Date.now(), busy: code === 1013 };
  }
}

/** Waits longer each time, with chance, and not at all once the person is back. */
function waitToRetry(retries: number): Promise<void> {
  const longest = Math.min(FIRST_WAIT_MS * 2 ** Math.min(retries, 10), LONGEST_WAIT_MS);
  const wait = longest * (0.6 + Math.random() * 0.4);
  return new Promise((resolve) => {
    const timer = setTimeout(done, wait);
    function done(): void {
      clearTimeout(timer);
      wake = null;
      resolve();
    }
    wake = done;
  });
}

/** Tries again at once; for a button and for the moment the network or the page is back. */
export function retryNow(): void {
  if (wake) wake();
  else if (Date.now() - lastHeardAt.peek() > SILENCE_LIMIT_MS) client?.terminate();
}

/** Keeps watch over silence, the network and the page's return, while the page lives. */
export function watchLink(): void {
  setInterval(retryNow, PING_MS);
  addEventListener("online", () => retryNow());
  addEventListener("pageshow", () => retryNow());
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") retryNow();
  });
}
