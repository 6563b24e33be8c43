import { expect, it } from "vitest";
import { groupOf } from "../src/board/groups.ts";
import { agentName, evidenceWords, stateWords, waitingWords } from "../src/text/words.ts";

it("shows a state of a later server as unknown, and hides no session for it", () => {
  expect(stateWords("HIBERNATING").label).toBe("Unknown");
  expect(groupOf({ state: "HIBERNATING" as "IDLE" })).toBe("idle");
});

it("has words for every other value that a later server may send", () => {
  expect(agentName("GEMINI")).toBe("Agent");
  expect(waitingWords("VOICE", null)).toBe("waits for you");
  expect(evidenceWords("MOON")).toContain("does not know");
});

it("is not fooled by names that every object has", () => {
  expect(stateWords("constructor").label).toBe("Unknown");
  expect(agentName("toString")).toBe("Agent");
});
