import type { ComponentChildren } from "preact";
import { formatAge, formatTime, now } from "../text/ages.ts";
import { stateWords } from "../text/words.ts";

/** An instant as its age, kept right as time passes; the whole time on hover. */
export function Age({ at, suffix = "" }: { at: string | null | undefined; suffix?: string }) {
  if (!at) return null;
  const age = formatAge(at, now.value);
  return (
    <time dateTime={at} title={formatTime(at)}>
      {age}
      {age === "now" ? "" : suffix}
    </time>
  );
}

export function StateChip({ state }: { state: string }) {
  const words = stateWords(state);
  return (
    <span class={`chip tone-${words.tone}`}>
      <span class="dot" aria-hidden="true" />
      {words.label}
    </span>
  );
}

/** A sentence about something that is wrong or worth knowing. */
export function Notice({ tone = "info", children }: { tone?: "info" | "bad"; children: ComponentChildren }) {
  return (
    <div class={`notice notice-${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </div>
  );
}

/** What a page shows in place of a list that has nothing, with what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Grey bars where rows will be; told to screen readers as one word. */
export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} class="bone" />
      ))}
    </div>
  );
}

export function PageHead({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <h1>{title}</h1>
      {children}
    </header>
  );
}
