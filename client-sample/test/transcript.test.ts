import { expect, it } from "vitest";
import type { EntryRow } from "../src/session/documents.ts";
import { arrange } from "../src/session/order.ts";
import { readToolInput } from "../src/session/toolInput.ts";

function entry(order: string, more: Record<string, unknown> = {}): EntryRow {
  return { __typename: "MessageEntry", id: `e${order}`, order, at: null, body: { text: "", truncated: false }, model: null, ...more } as EntryRow;
}

const call = (order: string, id: string) => entry(order, { __typename: "ToolCallEntry", toolCall: { id, name: "Bash", inputJson: "{}" } });
const result = (order: string, callId: string) => entry(order, { __typename: "ToolResultEntry", toolResult: { callId, isError: false, denied: false } });

it("puts entries in their order, each once, however they came", () => {
  const items = arrange([entry("03"), entry("01"), entry("02"), entry("01")]);
  expect(items.map((item) => item.entry.order)).toEqual(["01", "02", "03"]);
});

it("puts a tool's result beside its call, and keeps one without a call", () => {
  const items = arrange([call("01", "x"), call("02", "y"), result("03", "x"), result("04", "lost")]);
  expect(items.map((item) => [item.entry.order, item.result?.order ?? null])).toEqual([
    ["01", "03"],
    ["02", null],
    ["04", null],
  ]);
});

it("loses no record of a type that a later server may send", () => {
  const items = arrange([entry("01", { __typename: "HologramEntry" })]);
  expect(items).toHaveLength(1);
});

it("reads a tool's input, whatever it is", () => {
  expect(readToolInput('{"command":"ls"}').subject).toBe("ls");
  expect(readToolInput('{"file_path":"/a","old_string":"x","new_string":"y"}').edit).toEqual({ path: "/a", before: "x", after: "y" });
  expect(readToolInput('{"file_path":"/a","content":"y"}').edit).toEqual({ path: "/a", before: "", after: "y" });
  for (const text of ["", "{", "null", "[1]", '"x"', '{"command":1}', '{"file_path":"/a","edits":[null,{}]}']) {
    expect(readToolInput(text).edit).toBeNull();
  }
});
