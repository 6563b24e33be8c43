import { signal } from "@preact/signals";
import { type FeedHandle, followFeed } from "../api/useFeed.ts";
import { scopes } from "../login/scopes.ts";
import { now } from "../text/ages.ts";
import { RequestsFeed, type RequestRow } from "./documents.ts";

/** A settled request stays for a moment, so that its person sees how it ended. */
const SETTLED_SHOWN_MS = 60_000;
const OPEN = new Set(["PENDING", "ANSWERING", "KEYBOARD_ONLY"]);

const handle = signal<FeedHandle<RequestRow> | null>(null);

/** Starts following what waits for a person; needs `READ`. */
export function followRequests(): () => void {
  if (!scopes.peek().read) return () => {};
  const feed: FeedHandle<RequestRow> = followFeed(RequestsFeed, {}, (data) => data.requestFeed);
  handle.value = feed;
  return () => {
    feed.stop();
    handle.value = null;
  };
}

export function isOpen(request: Pick<RequestRow, "state">): boolean {
  return OPEN.has(request.state);
}

/** Returns what a session's page shows: what is open, and what was settled just now. */
export function requestsOf(sessionId: string): RequestRow[] {
  const rows = handle.value?.view.value.rows ?? new Map<string, RequestRow>();
  return [...rows.values()]
    .filter((row) => row.sessionId === sessionId)
    .filter((row) => isOpen(row) || now.value - Date.parse(row.stateSince) < SETTLED_SHOWN_MS)
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
}
