import { signal } from "@preact/signals";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The time, told anew every ten seconds; ages on the page follow it. */
export const now = signal(Date.now());
const TICK_MS = 10_000;

/** Starts the clock of `now`, for as long as the page lives. */
export function watchClock(): void {
  setInterval(() => {
    now.value = Date.now();
  }, TICK_MS);
}

/** Returns how long *ms* is, in the largest whole unit: "now", "5 min", "3 h", "2 d". */
export function formatSpan(ms: number): string {
  if (ms < MINUTE_MS) return "now";
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} d`;
}

/** Returns the age of an instant, or "" without one. Clocks differ: never negative. */
export function formatAge(at: string | null | undefined, nowMs: number): string {
  if (!at) return "";
  return formatSpan(Math.max(0, nowMs - Date.parse(at)));
}

/** Returns a time of day, with the date if it is not today. */
export function formatTime(at: string | number | null | undefined): string {
  if (!at) return "";
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    ...(isToday ? {} : { day: "numeric", month: "short" }),
  });
}

/** Returns a count of tokens in few characters: 950, 12.3k, 4.1M. */
export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${(count / 1000).toFixed(count < 99_950 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
