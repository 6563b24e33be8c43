import type { SessionRow } from "./rows.ts";

export interface Group {
  id: string;
  title: string;
  rows: SessionRow[];
}

const TITLES: [id: string, title: string][] = [
  ["needs", "Needs you"],
  ["works", "Working"],
  ["idle", "Idle"],
  ["ended", "Ended"],
];

/** Returns the group a session belongs to; an unknown state is not hidden. */
export function groupOf(row: Pick<SessionRow, "state">): string {
  if (row.state === "ASKING") return "needs";
  if (row.state === "RUNNING") return "works";
  return row.state === "ENDED" ? "ended" : "idle";
}

/** Returns the groups that have rows: who waits longest first, else the latest first. */
export function groupRows(rows: Iterable<SessionRow>): Group[] {
  const byGroup = new Map<string, SessionRow[]>(TITLES.map(([id]) => [id, []]));
  for (const row of rows) byGroup.get(groupOf(row))?.push(row);
  return TITLES.map(([id, title]) => ({ id, title, rows: sorted(id, byGroup.get(id) ?? []) })).filter(
    (group) => group.rows.length > 0,
  );
}

function sorted(group: string, rows: SessionRow[]): SessionRow[] {
  if (group === "needs") return rows.sort((a, b) => compare(a.stateSince, b.stateSince) || compare(a.id, b.id));
  const at = (row: SessionRow) => row.lastActivityAt ?? row.stateSince;
  return rows.sort((a, b) => compare(at(b), at(a)) || compare(a.id, b.id));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Tells whether a row has all the words, in any case, in what a person sees of it. */
export function isMatch(row: SessionRow, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const seen = [row.name, row.directory, row.gitBranch, row.model, row.project?.name, row.lastMessage?.text]
    .join("\n")
    .toLowerCase();
  return words.every((word) => seen.includes(word));
}

/** Returns the words of a search. */
export function searchWords(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Returns all tokens of a session, those read from a cache included. */
export function totalTokens(usage: SessionRow["usage"]): number {
  if (!usage) return 0;
  const { inputTokens, outputTokens, cacheReadTokens, cacheCreationTokens } = usage;
  return [inputTokens, outputTokens, cacheReadTokens, cacheCreationTokens].reduce((sum, each) => sum + Number(each), 0);
}
