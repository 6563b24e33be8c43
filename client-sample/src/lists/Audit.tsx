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
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Audit log">
          <table class="audit">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col">Outcome</th>
                <th scope="col">Detail</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.id}>
                  <td class="nowrap">{formatTime(entry.at)}</td>
                  <td title={entry.address ?? undefined}>{entry.actor}</td>
                  <td>{entry.action}</td>
                  <td class={`outcome-${entry.outcome.toLowerCase()}`}>
                    {entry.outcome.toLowerCase()}
                    {entry.code ? ` (${entry.code})` : ""}
                  </td>
                  <td class="muted">{[entry.detail, entry.targetId].filter(Boolean).join(" · ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {next ? (
        <button type="button" class="quiet" onClick={() => void load(next)}>
          Show earlier
        </button>
      ) : null}
    </div>
  );
}
