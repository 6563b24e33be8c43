/** One message of any feed (docs/feeds.md). Kinds are open: an unknown one is skipped. */
export interface FeedMessage<Row> {
  cursor: string;
  kind: string;
  more: boolean;
  removedIds: readonly string[];
  upserts: readonly Row[];
  at: string;
}

/**
 * The rows of one feed, kept right by its messages. It knows no transport.
 *
 * After RESET the rows stay until the snapshot that follows is complete, so that a
 * server's restart is no flash of an empty list; what is not in it goes then.
 */
export class Feed<Row extends { id: string }> {
  readonly rows = new Map<string, Row>();
  /** Give it to the server as `after` to go on from here; null at first. */
  cursor: string | null = null;
  /** Whether a whole snapshot has been taken in. */
  isComplete = false;
  #fresh: Set<string> | null = null;

  /** Takes a message in; returns whether a row changed. */
  apply(message: FeedMessage<Row>): boolean {
    this.cursor = message.cursor;
    if (message.kind === "RESET") this.#fresh = new Set();
    if (message.kind === "SNAPSHOT") this.#fresh ??= new Set();
    for (const row of message.upserts) {
      this.rows.set(row.id, row);
      this.#fresh?.add(row.id);
    }
    let changed = message.upserts.length > 0;
    for (const id of message.removedIds) {
      this.#fresh?.delete(id);
      changed = this.rows.delete(id) || changed;
    }
    if (message.kind !== "SNAPSHOT" || message.more) return changed;
    return this.#finishSnapshot() || changed;
  }

  #finishSnapshot(): boolean {
    let changed = !this.isComplete;
    for (const id of [...this.rows.keys()]) {
      if (this.#fresh?.has(id)) continue;
      this.rows.delete(id);
      changed = true;
    }
    this.#fresh = null;
    this.isComplete = true;
    return changed;
  }
}
