import type { Envelope } from "../keys/envelope.ts";

/**
 * What a person wrote and what was sealed of it, kept over reloads until the answer has
 * arrived: losing a thought-out answer to a dead battery would be the worst of all.
 */
export interface Draft {
  text: string;
  /** The answer as it was sealed and sent: the same one again is a retry, not a second. */
  sent: Envelope | null;
}

const PREFIX = "sidestage.draft.";
const KEPT_LIMIT = 20;

export function readDraft(offerId: string, storage: Storage = localStorage): Draft {
  try {
    const kept: unknown = JSON.parse(storage.getItem(PREFIX + offerId) ?? "null");
    if (typeof kept === "object" && kept !== null && "text" in kept && typeof kept.text === "string") {
      return { text: kept.text, sent: "sent" in kept ? (kept.sent as Envelope | null) : null };
    }
  } catch {
    // Another program's, or cut: as if there was none.
  }
  return { text: "", sent: null };
}

export function keepDraft(offerId: string, draft: Draft, storage: Storage = localStorage): void {
  if (draft.text === "" && draft.sent === null) {
    dropDraft(offerId, storage);
    return;
  }
  try {
    storage.setItem(PREFIX + offerId, JSON.stringify(draft));
  } catch {
    // The storage is full or forbidden: the draft lives as long as the page.
  }
}

export function dropDraft(offerId: string, storage: Storage = localStorage): void {
  storage.removeItem(PREFIX + offerId);
}

/** Forgets the drafts of offers that are gone. */
export function dropOldDrafts(known: ReadonlySet<string>, storage: Storage = localStorage): void {
  const names = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");
  const drafts = names.filter((name) => name.startsWith(PREFIX));
  if (drafts.length <= KEPT_LIMIT) return;
  for (const name of drafts) if (!known.has(name.slice(PREFIX.length))) storage.removeItem(name);
}
