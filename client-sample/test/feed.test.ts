import { describe, expect, it } from "vitest";
import { Feed, type FeedMessage } from "../src/api/feed.ts";

interface Row {
  id: string;
  state: string;
}

let cursor = 0;

function message(kind: string, ids: string[], more: Partial<FeedMessage<Row>> = {}): FeedMessage<Row> {
  cursor += 1;
  const upserts = ids.map((id) => ({ id, state: "IDLE" }));
  return { cursor: `c${cursor}`, kind, more: false, removedIds: [], upserts, at: "", ...more };
}

function ids(feed: Feed<Row>): string[] {
  return [...feed.rows.keys()].sort();
}

describe("a feed's rows", () => {
  it("are complete only after the snapshot's last part", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a"], { more: true }));
    expect(feed.isComplete).toBe(false);
    feed.apply(message("SNAPSHOT", ["b"]));
    expect(feed.isComplete).toBe(true);
    expect(ids(feed)).toEqual(["a", "b"]);
  });

  it("lose what was in no part of a later snapshot", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a", "b", "c"]));
    feed.apply(message("SNAPSHOT", ["a"], { more: true }));
    expect(ids(feed)).toEqual(["a", "b", "c"]);
    feed.apply(message("SNAPSHOT", ["d"]));
    expect(ids(feed)).toEqual(["a", "d"]);
  });

  it("stay in sight over a RESET until the new snapshot is whole", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a", "b"]));
    feed.apply(message("RESET", []));
    expect(ids(feed)).toEqual(["a", "b"]);
    feed.apply(message("SNAPSHOT", ["b"], { more: true }));
    feed.apply(message("SNAPSHOT", ["c"]));
    expect(ids(feed)).toEqual(["b", "c"]);
  });

  it("are right after a RESET in the middle of a snapshot", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a"], { more: true }));
    feed.apply(message("RESET", []));
    feed.apply(message("SNAPSHOT", ["b"]));
    expect(ids(feed)).toEqual(["b"]);
  });

  it("forget what a delta removes, also when it is told twice", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a", "b"]));
    const delta = message("DELTA", ["c"], { removedIds: ["a"] });
    feed.apply(delta);
    feed.apply(delta);
    expect(ids(feed)).toEqual(["b", "c"]);
  });

  it("keep the newest cursor, a heartbeat's too, and nothing to draw", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a"]));
    const heartbeat = message("HEARTBEAT", []);
    expect(feed.apply(heartbeat)).toBe(false);
    expect(feed.cursor).toBe(heartbeat.cursor);
  });

  it("survive a kind that a later server may send", () => {
    const feed = new Feed<Row>();
    feed.apply(message("SNAPSHOT", ["a"]));
    feed.apply(message("PAUSED", []));
    feed.apply(message("DELTA", ["b"]));
    expect(ids(feed)).toEqual(["a", "b"]);
  });

  it("equal the server's list after a thousand random changes and interruptions", () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    const server = new Set<string>();
    const feed = new Feed<Row>();
    const snapshot = () => {
      const all = [...server];
      const half = all.length >> 1;
      feed.apply(message("RESET", []));
      feed.apply(message("SNAPSHOT", all.slice(0, half), { more: true }));
      feed.apply(message("SNAPSHOT", all.slice(half)));
    };
    snapshot();
    for (let step = 0; step < 1000; step += 1) {
      const id = `r${random(40)}`;
      if (random(20) === 0) snapshot();
      else if (server.delete(id)) feed.apply(message("DELTA", [], { removedIds: [id] }));
      else {
        server.add(id);
        feed.apply(message("DELTA", [id]));
      }
      expect(ids(feed)).toEqual([...server].sort());
    }
  });
});
