import { signal } from "@preact/signals";
import { type FeedHandle, followFeed } from "../api/useFeed.ts";
import { OffersFeed, type OfferRow } from "./documents.ts";

const handle = signal<FeedHandle<OfferRow> | null>(null);

/** Starts following the handover offers. */
export function followOffers(): () => void {
  const feed: FeedHandle<OfferRow> = followFeed(OffersFeed, {}, (data) => data.handoverOfferFeed);
  handle.value = feed;
  return () => {
    feed.stop();
    handle.value = null;
  };
}

/** Returns a session's newest offer. */
export function offerOf(sessionId: string): OfferRow | null {
  let newest: OfferRow | null = null;
  for (const offer of handle.value?.view.value.rows.values() ?? []) {
    if (offer.session?.id === sessionId && (!newest || offer.createdAt > newest.createdAt)) newest = offer;
  }
  return newest;
}
