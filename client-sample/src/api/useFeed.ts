import { type ReadonlySignal, signal } from "@preact/signals";
import type { TadaDocumentNode } from "gql.tada";
import { useEffect, useMemo } from "preact/hooks";
import { Feed, type FeedMessage } from "./feed.ts";
import { link } from "./link.ts";
import { printDocument } from "./print.ts";

/** What a page shows of a feed. The map is replaced with every change. */
export interface FeedView<Row> {
  rows: ReadonlyMap<string, Row>;
  /** False until the first whole snapshot is there. */
  isComplete: boolean;
  /** Why the feed ended for good, in a sentence; null while it goes on. */
  ended: string | null;
}

export interface FeedHandle<Row> {
  view: ReadonlySignal<FeedView<Row>>;
  stop: () => void;
}

const FRAME_MS = 16;

/** Follows a feed until it is stopped, over every interruption of the connection. */
export function followFeed<Row extends { id: string }, Data, Variables extends object>(
  document: TadaDocumentNode<Data, Variables>,
  variables: Variables,
  pick: (data: Data) => FeedMessage<Row>,
): FeedHandle<Row> {
  const feed = new Feed<Row>();
  const view = signal<FeedView<Row>>({ rows: new Map(), isComplete: false, ended: null });
  let timer = 0;
  const show = () => {
    timer = 0;
    view.value = { rows: new Map(feed.rows), isComplete: feed.isComplete, ended: null };
  };
  const end = (sentence: string) => {
    view.value = { ...view.peek(), ended: sentence };
  };
  // graphql-ws sends its payload anew after each reconnection; the getter makes that
  // the newest cursor (docs/feeds.md, "Coming back").
  const live = {
    ...variables,
    get after() {
      return feed.cursor;
    },
  };
  const stop = link().subscribe<Data>(
    { query: printDocument(document), variables: live },
    {
      next: ({ data, errors }) => {
        if (errors?.[0]) end(errors[0].message);
        // However fast the messages come, a page is drawn once a frame; a hidden one
        // once a second, as browsers slow its timers.
        else if (data && feed.apply(pick(data))) timer ||= setTimeout(show, FRAME_MS);
      },
      error: (error) => end(sentenceOf(error)),
      complete: () => end("This is gone."),
    },
  );
  return {
    view,
    stop: () => {
      clearTimeout(timer);
      stop();
    },
  };
}

function sentenceOf(error: unknown): string {
  if (Array.isArray(error) && error[0] instanceof Object && "message" in error[0]) {
    return String(error[0].message);
  }
  return "The connection ended.";
}

/** Follows a feed while the component is shown; *key* names its variables. */
export function useFeed<Row extends { id: string }, Data, Variables extends object>(
  document: TadaDocumentNode<Data, Variables>,
  variables: Variables,
  pick: (data: Data) => FeedMessage<Row>,
  key = "",
): FeedView<Row> {
  const handle = useMemo(() => followFeed(document, variables, pick), [key]);
  useEffect(() => handle.stop, [handle]);
  return handle.view.value;
}
