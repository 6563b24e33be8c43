import { expect, it } from "vitest";
import { dropDraft, dropOldDrafts, keepDraft, readDraft } from "../src/handover/drafts.ts";

function storage(): Storage {
  const kept = new Map<string, string>();
  return {
    get length() {
      return kept.size;
    },
    key: (index) => [...kept.keys()][index] ?? null,
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
    clear: () => kept.clear(),
  };
}

it("keeps a draft until its offer is answered", () => {
  const place = storage();
  keepDraft("offer:1", { text: "Take the", sent: null }, place);
  expect(readDraft("offer:1", place).text).toBe("Take the");
  dropDraft("offer:1", place);
  expect(readDraft("offer:1", place)).toEqual({ text: "", sent: null });
});

it("takes spoilt drafts for none", () => {
  const place = storage();
  for (const spoilt of ["{", "1", "null", '{"text":1}']) {
    place.setItem("sidestage.draft.offer:1", spoilt);
    expect(readDraft("offer:1", place).text).toBe("");
  }
});

it("forgets drafts of offers that are long gone", () => {
  const place = storage();
  for (let number = 0; number < 30; number += 1) keepDraft(`offer:${number}`, { text: "x", sent: null }, place);
  dropOldDrafts(new Set(["offer:3"]), place);
  expect(place.length).toBe(1);
});
