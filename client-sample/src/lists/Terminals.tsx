import { useEffect, useRef, useState } from "preact/hooks";
import { ask, payload, Refused } from "../api/ask.ts";
import { graphql, type ResultOf } from "../api/graphql.ts";
import { useFeed } from "../api/useFeed.ts";
import { addressOf, go } from "../router.ts";
import { markStarted } from "../terminal/opening.ts";
import { makeUuid } from "../text/uuid.ts";
import { Age, Empty, Loading, Notice, PageHead } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { type TerminalRow, TerminalsFeed } from "./terminalRows.ts";

const Choices = graphql(`
  query Choices {
    projects(first: 100) { nodes { id name templates { id title } } }
    templates { id title description available }
  }
`);

const Start = graphql(`
  mutation Start($input: StartTerminalInput!) {
    startTerminal(input: $input) {
      __typename
      ... on StartTerminalPayload { terminal { id } }
      ... on UserError { code message }
    }
  }
`);

const START_COLS = 100;
const START_ROWS = 30;

/** The terminals that run here or did, and a way to start another. */
export function Terminals(_: { id: string }) {
  const view = useFeed(TerminalsFeed, {}, (data) => data.terminalFeed);
  const rows = [...view.rows.values()].sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
  return (
    <div class="page">
      <PageHead title="Terminals" />
      <StartForm />
      {view.ended ? <Notice tone="bad">{view.ended}</Notice> : null}
      {view.isComplete ? null : <Loading />}
      {view.isComplete && rows.length === 0 ? (
        <Empty title="No terminals">
          <p>A terminal opens when you resume a session, or start a program above.</p>
        </Empty>
      ) : null}
      {rows.length > 0 ? (
        <ul class="rows">
          {rows.map((row) => (
            <Row key={row.id} row={row} />
          ))}
        </ul>
      ) : null}
    </div>
  );
}

function Row({ row }: { row: TerminalRow }) {
  const isRunning = row.state === "RUNNING";
  return (
    <li class={`row tone-${isRunning ? "works" : "ended"}`}>
      <a href={addressOf("terminal", row.id)}>
        <span class="row-top">
          <span class="dot" aria-hidden="true" />
          <span class="row-name" dir="auto">
            {row.session?.name ?? row.name}
          </span>
          <span class="row-age">
            <Age at={isRunning ? row.startedAt : (row.endedAt ?? row.startedAt)} />
          </span>
        </span>
        <span class="facts">
          <span class="fact">{stateWords(row)}</span>
          {row.title ? <span class="fact" dir="auto">{row.title}</span> : null}
          {row.project ? <span class="fact">{row.project.name}</span> : null}
          {row.readOnly ? <span class="fact">read-only</span> : null}
        </span>
      </a>
    </li>
  );
}

function stateWords(row: TerminalRow): string {
  if (row.state === "RUNNING") return "running";
  if (row.state === "LOST") return "ended with its host; its last screen is kept";
  if (row.endReason === "CONVERSATION_TAKEN") return "ended: the session was opened at the keyboard";
  return row.exitStatus === null ? "ended" : `ended with status ${row.exitStatus}`;
}

function StartForm() {
  const [choices, setChoices] = useState<ResultOf<typeof Choices> | null>(null);
  const [project, setProject] = useState("");
  const [template, setTemplate] = useState("");
  const key = useRef(makeUuid());
  useEffect(() => {
    ask(Choices, {}).then(setChoices, (error: unknown) => {
      // Without choices there is no form; the bar says that the server is away.
      if (!(error instanceof Refused)) throw error;
    });
  }, []);
  const chosen = choices?.projects.nodes.find((each) => each.id === project) ?? choices?.projects.nodes[0];
  const templates = (choices?.templates ?? []).filter(
    (each) => each.available && (!chosen?.templates || chosen.templates.some(({ id }) => id === each.id)),
  );
  const picked = templates.find((each) => each.id === template) ?? templates[0];
  const start = useAction(async () => {
    if (!chosen || !picked) return;
    const input = {
      projectId: chosen.id,
      template: picked.id,
      cols: START_COLS,
      rows: START_ROWS,
      idempotencyKey: key.current,
    };
    const { startTerminal } = await ask(Start, { input });
    key.current = makeUuid();
    const { terminal } = payload(startTerminal, "StartTerminalPayload");
    markStarted(terminal.id);
    go("terminal", terminal.id);
  });
  if (!choices) return null;
  if (!chosen) {
    return (
      <p class="reason">
        To start a program here, add a folder under <a href={addressOf("projects")}>Projects</a>.
      </p>
    );
  }
  return (
    <form
      class="inline-form card"
      onSubmit={(event) => {
        event.preventDefault();
        void start.run();
      }}
    >
      <label>
        Project
        <select value={chosen.id} onChange={(event) => setProject(event.currentTarget.value)}>
          {choices.projects.nodes.map((each) => (
            <option key={each.id} value={each.id}>
              {each.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Program
        <select value={picked?.id ?? ""} onChange={(event) => setTemplate(event.currentTarget.value)}>
          {templates.map((each) => (
            <option key={each.id} value={each.id}>
              {each.title}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" class="primary" disabled={start.isBusy || !picked}>
        {start.isBusy ? "Starting…" : "Start"}
      </button>
      {start.failure ? <Notice tone="bad">{start.failure}</Notice> : null}
    </form>
  );
}
