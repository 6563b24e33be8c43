import { useEffect, useRef } from "preact/hooks";
import { lastHeardAt, linkState } from "../api/link.ts";
import { graphql } from "../api/graphql.ts";
import { groupOf } from "../board/groups.ts";
import type { SessionRow } from "../board/rows.ts";
import { sessionsView } from "../board/sessions.ts";
import { useQuery } from "../lists/useQuery.ts";
import { addressOf } from "../router.ts";
import { formatCount, formatTime, now } from "../text/ages.ts";
import { folderName, waitingWords } from "../text/words.ts";
import { Icon } from "../ui/Icon.tsx";
import { Age } from "../ui/parts.tsx";
import { Bars } from "./Bars.tsx";

const Usage = graphql(`
  query Usage($from: DateTime!, $to: DateTime!) {
    usage(from: $from, to: $to, bucket: HOUR) { start usage { inputTokens outputTokens cacheCreationTokens } }
    server { host { name } }
  }
`);

const HOURS = 24;
const HOUR_MS = 3_600_000;
const USAGE_EVERY_MS = 60_000;
/** Two heartbeats without a word: what is shown may be old, and says so. */
const OLD_AFTER_MS = 45_000;
/** A wall has no scroll bar; what does not fit is counted. */
const SHOWN_LIMIT = 12;

/** What runs and what waits, for a big screen; nothing here can be pressed but the way back. */
export function Wall(_: { id: string }) {
  const rows = [...sessionsView().rows.values()];
  const live = rows.filter((row) => row.state !== "ENDED");
  const waiting = live.filter((row) => groupOf(row) === "needs").sort((a, b) => (a.stateSince < b.stateSince ? -1 : 1));
  const working = live.filter((row) => groupOf(row) === "works");
  const idle = live.filter((row) => groupOf(row) === "idle");
  return (
    <div class="wall">
      <WallHead />
      <main id="main" class="wall-grid">
        <section class="wall-numbers" aria-label="Counts">
          <Count tone="needs" count={waiting.length} label="need you" />
          <Count tone="works" count={working.length} label="working" />
          <Count tone="rests" count={idle.length} label="idle" />
        </section>
        <List title="Waiting" rows={waiting} empty="Nobody waits." />
        <List title="Working" rows={working} empty="Nothing runs." />
        <ProjectCounts rows={live} />
        <Tokens />
      </main>
    </div>
  );
}

function WallHead() {
  const age = now.value - lastHeardAt.value;
  const isOld = linkState.value.kind !== "online" || age > OLD_AFTER_MS;
  return (
    <header class="wall-head">
      <a class="icon-button" href={addressOf("")} aria-label="All sessions">
        <Icon name="back" />
      </a>
      <h1>Sidestage</h1>
      <p class={isOld ? "wall-old" : "muted"} role="status">
        {isOld ? `Old: last heard ${formatTime(lastHeardAt.value) || "never"}` : `Live · ${formatTime(now.value)}`}
      </p>
    </header>
  );
}

function Count({ tone, count, label }: { tone: string; count: number; label: string }) {
  return (
    <p class={`wall-number tone-${tone}${count === 0 ? " is-zero" : ""}`}>
      <strong>{count}</strong> {label}
    </p>
  );
}

function List({ title, rows, empty }: { title: string; rows: SessionRow[]; empty: string }) {
  const shown = rows.slice(0, SHOWN_LIMIT);
  return (
    <section class="wall-list">
      <h2>{title}</h2>
      {rows.length === 0 ? <p class="muted">{empty}</p> : null}
      <ul>
        {shown.map((row) => (
          <li key={row.id}>
            <span class="wall-name" dir="auto">
              {row.name}
            </span>
            <span class="wall-age">
              <Age at={row.stateSince} />
            </span>
            <span class="wall-what muted">
              {[
                row.project?.name ?? folderName(row.directory),
                row.waitingFor && row.state === "ASKING"
                  ? waitingWords(row.waitingFor.kind, row.waitingFor.toolName)
                  : null,
              ]
                .filter(Boolean)
                .join(" · ")}
            </span>
          </li>
        ))}
      </ul>
      {rows.length > shown.length ? <p class="muted">and {rows.length - shown.length} more</p> : null}
    </section>
  );
}

function ProjectCounts({ rows }: { rows: SessionRow[] }) {
  const counts = new Map<string, { total: number; waiting: number }>();
  for (const row of rows) {
    const name = row.project?.name ?? "No project";
    const count = counts.get(name) ?? { total: 0, waiting: 0 };
    count.total += 1;
    if (row.state === "ASKING") count.waiting += 1;
    counts.set(name, count);
  }
  const sorted = [...counts].sort(([, a], [, b]) => b.total - a.total).slice(0, SHOWN_LIMIT);
  return (
    <section class="wall-list">
      <h2>Projects</h2>
      {sorted.length === 0 ? <p class="muted">Nothing is live.</p> : null}
      <ul>
        {sorted.map(([name, { total, waiting }]) => (
          <li key={name}>
            <span class="wall-name" dir="auto">{name}</span>
            <span class="wall-age">{waiting > 0 ? `${waiting} of ${total} wait` : `${total} live`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Tokens of the last day, hour by hour. Asked for again every minute. */
function Tokens() {
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const from = hour - (HOURS - 1) * HOUR_MS;
  const { data, refresh } = useQuery(Usage, {
    from: new Date(from).toISOString(),
    to: new Date(hour + HOUR_MS).toISOString(),
  });
  const again = useRef(refresh);
  again.current = refresh;
  useEffect(() => {
    const timer = setInterval(() => again.current(), USAGE_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const byHour = new Map((data?.usage ?? []).map((point) => [Date.parse(point.start), tokensOf(point.usage)]));
  const values = Array.from({ length: HOURS }, (_, index) => byHour.get(from + index * HOUR_MS) ?? 0);
  const sum = values.reduce((total, each) => total + each, 0);
  return (
    <section class="wall-list">
      <h2>Tokens, last {HOURS} hours</h2>
      <p class="wall-sum">{formatCount(sum)}</p>
      <Bars values={values} label={`Tokens by hour: ${sum} in the last 24 hours`} />
    </section>
  );
}

function tokensOf(usage: { inputTokens: string; outputTokens: string; cacheCreationTokens: string }): number {
  return Number(usage.inputTokens) + Number(usage.outputTokens) + Number(usage.cacheCreationTokens);
}
