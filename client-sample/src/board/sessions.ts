import { effect, signal } from "@preact/signals";
import { type FeedHandle, followFeed } from "../api/useFeed.ts";
import { scopes } from "../login/scopes.ts";
import { BoardFeed, LabelsFeed, type SessionRow } from "./rows.ts";

/** The one feed of sessions that board, wall and session pages share. */
const handle = signal<FeedHandle<SessionRow> | null>(null);

/** Starts following the sessions; the caller stops it when the login ends. */
export function followSessions(): () => void {
  const feed: FeedHandle<SessionRow> = scopes.peek().read
    ? followFeed(BoardFeed, {}, (data) => data.outsideSessionFeed)
    : followFeed(LabelsFeed, {}, (data) => data.outsideSessionFeed);
  handle.value = feed;
  const stopTitle = effect(() => showInTitle(feed.view.value.rows.values()));
  return () => {
    stopTitle();
    feed.stop();
    handle.value = null;
  };
}

/** Returns what is known of the sessions now; components that read it follow it. */
export function sessionsView() {
  return handle.value?.view.value ?? { rows: new Map<string, SessionRow>(), isComplete: false, ended: null };
}

/** A tab in the background says how many sessions wait for the person. */
function showInTitle(rows: Iterable<SessionRow>): void {
  let waiting = 0;
  for (const row of rows) if (row.state === "ASKING") waiting += 1;
  document.title = waiting > 0 ? `(${waiting}) Sidestage` : "Sidestage";
}
