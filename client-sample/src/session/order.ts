import type { EntryRow } from "./documents.ts";

/** What is drawn as one: an entry, or a tool's call with what it gave back. */
export interface Item {
  entry: EntryRow;
  result: EntryRow | null;
}

/**
 * Returns the entries in their order, each tool's result beside its call.
 * A result whose call is on an earlier page stands for itself.
 */
export function arrange(entries: Iterable<EntryRow>): Item[] {
  const sorted = [...new Map([...entries].map((entry) => [entry.id, entry])).values()].sort(byOrder);
  const calls = new Map<string, Item>();
  const items: Item[] = [];
  for (const entry of sorted) {
    const call = entry.__typename === "ToolResultEntry" ? calls.get(entry.toolResult?.callId ?? "") : undefined;
    if (call && call.result === null) {
      call.result = entry;
      continue;
    }
    const item = { entry, result: null };
    items.push(item);
    if (entry.__typename === "ToolCallEntry" && entry.toolCall) calls.set(entry.toolCall.id, item);
  }
  return items;
}

function byOrder(a: EntryRow, b: EntryRow): number {
  return a.order < b.order ? -1 : a.order > b.order ? 1 : 0;
}
