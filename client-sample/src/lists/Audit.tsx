import { useEffect, useState } from "preact/hooks";
import { ask, Refused } from "../api/ask.ts";
import { graphql, type ResultOf } from "../api/graphql.ts";
import { formatTime } from "../text/ages.ts";
import { Empty, Loading, Notice, PageHead } from "../ui/parts.tsx";

const AuditPage = graphql(`
  query AuditPage($after: String) {
    auditLog(first: 50, after: $after) {
      nodes { id at actor action outcome code detail targetId address }
      pageInfo { endCursor hasNextPage }
    }
  }
`);

type Entry = ResultOf<typeof AuditPage>["auditLog"]["nodes"][number];

/** Who did what, newest first. */
export function Audit(_: { id: string }) {
  const [entries, setEntries] = useState<Entry[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const load = async (after: string | null) => {
    try {
      const { auditLog } = await ask(AuditPage, { after });
      setEntries((known) => [...(after ? (known ?? []) : []), ...auditLog.nodes]);
      setNext(auditLog.pageInfo.hasNextPage ? (auditLog.pageInfo.endCursor ?? null) : null);
      setFailure(null);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      setFailure(error.message);
    }
  };
  useEffect(() => void load(null), []);
  return (
    <div class="page">
      <PageHead title="Audit log" />
      <p class="lead">Everything that was done through Sidestage, by whom. Nobody can edit it unnoticed.</p>
      {failure ? <Notice tone="bad">{failure}</Notice> : null}
      {entries === null && !failure ? <Loading rows={6} /> : null}
      {entries?.length === 0 ? <Empty title="Nothing yet" /> : null}
      {entries?.length ? (
        <ul class="rows">
          {entries.map((entry) => (
            <EntryRow key={entry.id} entry={entry} />
          ))}
        </ul>
      ) : null}
      {next ? (
        <button type="button" class="quiet" onClick={() => void load(next)}>
          Show earlier
        </button>
      ) : null}
    </div>
  );
}

function EntryRow({ entry }: { entry: Entry }) {
  const outcome = entry.outcome.toLowerCase();
  return (
    <li class="row audit">
      <span class="row-name">{entry.action}</span>
      <span class={`outcome-${outcome}`}>
        {outcome}
        {entry.code ? ` (${entry.code})` : ""}
      </span>
      <span class="muted">
        {[formatTime(entry.at), entry.actor, entry.address, entry.detail].filter(Boolean).join(" · ")}
      </span>
      {entry.targetId ? <span class="muted audit-target">{entry.targetId}</span> : null}
    </li>
  );
}
