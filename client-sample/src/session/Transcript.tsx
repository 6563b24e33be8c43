import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../api/ask.ts";
import { useFeed } from "../api/useFeed.ts";
import { Empty, Loading, Notice } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { EarlierEntries, type EntryRow, TranscriptFeed } from "./documents.ts";
import { EntryView } from "./Entry.tsx";
import { arrange } from "./order.ts";

/** What the feed begins with; fewer entries are the whole conversation. */
const FEED_FIRST = 50;
/** Nearer to the end than this, a person reads along and new entries scroll in. */
const NEAR_END_PX = 120;

/** A conversation, live, with its earlier entries on demand. */
export function Transcript({ sessionId }: { sessionId: string }) {
  const view = useFeed(TranscriptFeed, { sessionId }, (data) => data.transcriptFeed, sessionId);
  const [earlier, setEarlier] = useState<EntryRow[]>([]);
  const [hasMore, setHasMore] = useState(true);
  useEffect(() => setEarlier([]), [sessionId]);

  const items = useMemo(() => arrange([...earlier, ...view.rows.values()]), [earlier, view.rows]);
  const older = useAction(async () => {
    const before = items[0]?.entry.order;
    if (before === undefined) return;
    const { node } = await ask(EarlierEntries, { id: sessionId, before });
    const page = node && "transcript" in node ? node.transcript : null;
    setHasMore(page?.pageInfo.hasPreviousPage ?? false);
    if (page) setEarlier([...page.nodes, ...earlier]);
  });
  useReadingAlong(items.length);

  if (view.ended) return <Notice tone="bad">{view.ended}</Notice>;
  if (!view.isComplete) return <Loading rows={5} />;
  if (items.length === 0) {
    return (
      <Empty title="Nothing was said yet">
        <p>The conversation shows here as soon as someone writes.</p>
      </Empty>
    );
  }
  const isWhole = !hasMore || (earlier.length === 0 && view.rows.size < FEED_FIRST);
  return (
    <section class="transcript" aria-labelledby="conversation">
      <h2 id="conversation" class="hidden">
        Conversation
      </h2>
      {isWhole ? null : (
        <button type="button" class="quiet" disabled={older.isBusy} onClick={older.run}>
          {older.isBusy ? "Loading…" : "Show earlier"}
        </button>
      )}
      {older.failure ? <Notice tone="bad">{older.failure}</Notice> : null}
      {items.map((item) => (
        <EntryView key={item.entry.id} entry={item.entry} result={item.result} />
      ))}
    </section>
  );
}

/** Keeps the end in sight for who reads there, and the place for who reads elsewhere. */
function useReadingAlong(count: number): void {
  const wasNearEnd = useRef(true);
  useEffect(() => {
    const look = () => {
      const root = document.documentElement;
      wasNearEnd.current = root.scrollHeight - root.scrollTop - root.clientHeight < NEAR_END_PX;
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => {
    if (count > 0 && wasNearEnd.current) scrollTo(0, document.documentElement.scrollHeight);
  }, [count]);
}
