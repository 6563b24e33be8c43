import { useEffect, useRef, useState } from "preact/hooks";
import { ask, payload, Refused } from "../api/ask.ts";
import type { ResultOf } from "../api/graphql.ts";
import { totalTokens } from "../board/groups.ts";
import type { SessionRow } from "../board/rows.ts";
import { sessionsView } from "../board/sessions.ts";
import { HandoverCard } from "../handover/HandoverCard.tsx";
import { offerOf } from "../handover/offers.ts";
import { scopes } from "../login/scopes.ts";
import { RequestCard } from "../requests/RequestCard.tsx";
import { requestsOf } from "../requests/requests.ts";
import { addressOf, go } from "../router.ts";
import { formatCount, formatTime, now } from "../text/ages.ts";
import { markStarted } from "../terminal/opening.ts";
import { makeUuid } from "../text/uuid.ts";
import { agentName, evidenceWords, folderName, modelName, stateWords, waitingWords } from "../text/words.ts";
import { Icon } from "../ui/Icon.tsx";
import { Age, Empty, Loading, Notice, StateChip } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { Resume, SessionLineage } from "./documents.ts";
import { TakeOverButton } from "./TakeOver.tsx";
import { Transcript } from "./Transcript.tsx";

/** What a terminal is started with; the page that shows it sets the true size. */
const START_COLS = 100;
const START_ROWS = 30;
const SETTLED_SHOWN_MS = 60_000;

/** One session: what it is and does, what can be done, and its conversation. */
export function SessionPage({ id }: { id: string }) {
  const view = sessionsView();
  const row = view.rows.get(id);
  if (!row) {
    if (!view.isComplete) return <div class="page"><Loading /></div>;
    return (
      <div class="page">
        <Empty title="This session is no longer in the list">
          <p>
            Its transcript was removed. <a href={addressOf("")}>All sessions</a>
          </p>
        </Empty>
      </div>
    );
  }
  return (
    <div class="page page-session">
      <Head row={row} />
      <Facts row={row} />
      {row.conflict ? <Notice tone="bad">{row.conflict.message}</Notice> : null}
      <Cards row={row} />
      <Actions row={row} />
      {scopes.value.read ? (
        <Transcript sessionId={id} />
      ) : (
        <Notice>This login may see states and names, but no texts.</Notice>
      )}
    </div>
  );
}

/** What the session waits for: requests, else the question its turn ended with. */
function Cards({ row }: { row: SessionRow }) {
  const place = row.project?.name ?? folderName(row.directory) ?? row.name;
  const requests = requestsOf(row.id);
  const offer = offerOf(row.id);
  // An offer that came to nothing is told for a moment only.
  const isRecent = offer && now.value - Date.parse(offer.stateSince) < SETTLED_SHOWN_MS;
  const isShown = offer && (OPEN_OFFERS.has(offer.state) || isRecent);
  return (
    <>
      {requests.map((request) => (
        <RequestCard key={request.id} request={request} place={place} />
      ))}
      {isShown ? <HandoverCard key={offer.id} offer={offer} place={place} /> : null}
    </>
  );
}

const OPEN_OFFERS = new Set(["PENDING", "ANSWERING", "CONTINUED"]);

function Head({ row }: { row: SessionRow }) {
  return (
    <header class="session-head">
      <a class="icon-button" href={addressOf("")} aria-label="All sessions">
        <Icon name="back" />
      </a>
      <h1 dir="auto">{row.name}</h1>
      <StateChip state={row.state} />
    </header>
  );
}

/** What matters at a glance in one line; the rest unfolds. */
function Facts({ row }: { row: SessionRow }) {
  const lineage = useLineage(row);
  return (
    <>
      <p class="session-line">
        {row.state === "ASKING" && row.waitingFor ? (
          <strong class="tone-needs session-waits">
            The agent {waitingWords(row.waitingFor.kind, row.waitingFor.toolName)}.
          </strong>
        ) : null}
        <span class="facts">
          <span class="fact">{row.project?.name ?? folderName(row.directory)}</span>
          {row.gitBranch ? (
            <span class="fact">
              <Icon name="branch" size={14} />
              {row.gitBranch}
            </span>
          ) : null}
          <span class="fact">{modelName(row.model) || agentName(row.agent)}</span>
          <span class="fact">
            <Age at={row.stateSince} suffix=" ago" />
          </span>
        </span>
      </p>
      <Lineage lineage={lineage} />
      <details class="session-more">
        <summary>Details</summary>
        <MoreFacts row={row} lineage={lineage} />
      </details>
    </>
  );
}

function Lineage({ lineage }: { lineage: LineageData | null }) {
  const next = lineage?.continuations.nodes ?? [];
  if (!lineage?.continuedFrom && next.length === 0) return null;
  return (
    <p class="lineage">
      {lineage?.continuedFrom ? (
        <>
          Continues <SessionLink session={lineage.continuedFrom} />.{" "}
        </>
      ) : null}
      {next.length > 0 ? "Continued in " : ""}
      {next.map((each, index) => (
        <>
          {index > 0 ? ", " : ""}
          <SessionLink key={each.id} session={each} />
        </>
      ))}
    </p>
  );
}

function MoreFacts({ row, lineage }: { row: SessionRow; lineage: LineageData | null }) {
  const tokens = totalTokens(row.usage);
  return (
    <dl class="session-facts">
      <Fact name="State">
        {stateWords(row.state).label} since {formatTime(row.stateSince)}
        {row.stateEvidence ? `, seen by ${evidenceWords(row.stateEvidence.source)}` : ""}
      </Fact>
      {row.directory ? <Fact name="Folder"><span class="path">{row.directory}</span></Fact> : null}
      {lineage?.currentDirectory && lineage.currentDirectory !== row.directory ? (
        <Fact name="Now in"><span class="path">{lineage.currentDirectory}</span></Fact>
      ) : null}
      <Fact name="Agent">
        {agentName(row.agent)} {lineage?.agentVersion ?? ""}
      </Fact>
      {lineage?.permissionMode ? <Fact name="Mode">{lineage.permissionMode}</Fact> : null}
      {row.startedAt ? <Fact name="Began">{formatTime(row.startedAt)}</Fact> : null}
      {tokens > 0 ? <Fact name="Tokens">{formatCount(tokens)}, those from the cache included</Fact> : null}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd dir="auto">{children}</dd>
    </div>
  );
}

function SessionLink({ session }: { session: { id: string; name: string } }) {
  return (
    <a href={addressOf("session", session.id)} dir="auto">
      {session.name}
    </a>
  );
}

type LineageData = Extract<NonNullable<ResultOf<typeof SessionLineage>["node"]>, { continuations: unknown }>;

/** Asks for what the feed cannot carry, when the session changes its state or hands off. */
function useLineage(row: SessionRow): LineageData | null {
  const [lineage, setLineage] = useState<LineageData | null>(null);
  useEffect(() => {
    let isShown = true;
    ask(SessionLineage, { id: row.id })
      .then(({ node }) => {
        if (isShown) setLineage(node && "continuations" in node ? node : null);
      })
      .catch((error: unknown) => {
        // What is missing then is said by the bar that the page is offline.
        if (!(error instanceof Refused)) throw error;
      });
    return () => {
      isShown = false;
    };
  }, [row.id, row.state, row.handedOffAt]);
  return lineage;
}

/** The one thing to do with a session now, or the one-line reason why there is none. */
function Actions({ row }: { row: SessionRow }) {
  const key = useRef(makeUuid());
  const resume = useAction(async () => {
    const input = { sessionId: row.id, cols: START_COLS, rows: START_ROWS, idempotencyKey: key.current };
    const { resumeOutsideSession: answer } = await ask(Resume, { input });
    // Whoever was faster: its terminal is the one to look at.
    if (answer.__typename === "OutsideSessionResumed" && answer.openTerminal) {
      go("terminal", answer.openTerminal.id);
      return;
    }
    // A refusal is final for its key; the next try is another start.
    if (answer.__typename !== "ResumeOutsideSessionPayload") key.current = makeUuid();
    const { terminal } = payload(answer, "ResumeOutsideSessionPayload");
    markStarted(terminal.id);
    go("terminal", terminal.id);
  });
  if (row.terminal?.state === "RUNNING") {
    return (
      <div class="actions">
        <a class="button primary" href={addressOf("terminal", row.terminal.id)}>
          <Icon name="terminal" size={18} /> Open its terminal
        </a>
      </div>
    );
  }
  if (row.resume.refusal) return <p class="reason">{row.resume.refusal.message}</p>;
  if (row.state === "IDLE" && scopes.value.terminal && !row.terminal) return <TakeOverButton sessionId={row.id} />;
  if (!row.resume.available || !scopes.value.terminal) return null;
  return (
    <div class="actions">
      <button type="button" class="primary" disabled={resume.isBusy} onClick={resume.run}>
        <Icon name="play" size={18} /> {resume.isBusy ? "Starting…" : "Resume"}
      </button>
      <span class="muted">Goes on with this conversation in a sandboxed terminal.</span>
      {resume.failure ? <Notice tone="bad">{resume.failure}</Notice> : null}
    </div>
  );
}
