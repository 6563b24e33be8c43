import { memo } from "../ui/memo.ts";
import { addressOf } from "../router.ts";
import { formatCount } from "../text/ages.ts";
import { agentName, evidenceWords, folderName, modelName, stateWords, waitingWords } from "../text/words.ts";
import { Icon } from "../ui/Icon.tsx";
import { Age } from "../ui/parts.tsx";
import { totalTokens } from "./groups.ts";
import type { SessionRow } from "./rows.ts";

/** One session of the board; drawn anew only when the feed brings it anew. */
export const Row = memo(function Row({ row }: { row: SessionRow }) {
  const words = stateWords(row.state);
  return (
    <li class={`row tone-${words.tone}`}>
      <a href={addressOf("session", row.id)}>
        <span class="row-top">
          <span class="dot" title={whyTitle(row)} aria-hidden="true" />
          <span class="row-name" dir="auto">
            {row.name}
          </span>
          <span class="hidden">, {words.label}</span>
          <span class="row-age">
            <Age at={row.state === "ASKING" ? row.stateSince : (row.lastActivityAt ?? row.stateSince)} />
          </span>
        </span>
        <Waiting row={row} />
        <Facts row={row} />
        {row.lastMessage?.text ? (
          <span class="row-words" dir="auto">
            {row.lastMessage.role === "USER" ? <span class="muted">You: </span> : null}
            {row.lastMessage.text}
          </span>
        ) : null}
      </a>
    </li>
  );
});

function whyTitle(row: SessionRow): string {
  const words = stateWords(row.state).label;
  return row.stateEvidence ? `${words}, as told by ${evidenceWords(row.stateEvidence.source)}` : words;
}

function Waiting({ row }: { row: SessionRow }) {
  if (row.conflict) return <span class="row-alert">{row.conflict.message}</span>;
  if (row.state !== "ASKING" || !row.waitingFor) return null;
  const { kind, toolName, label } = row.waitingFor;
  return (
    <span class="row-alert">
      {capital(waitingWords(kind, toolName))}
      {label && kind !== "PERMISSION" ? `: ${label}` : ""}
    </span>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function Facts({ row }: { row: SessionRow }) {
  const tokens = totalTokens(row.usage);
  const model = modelName(row.model);
  return (
    <span class="facts">
      <span class="fact" title={row.directory ?? undefined}>
        {row.project?.name ?? folderName(row.directory)}
      </span>
      {row.gitBranch ? (
        <span class="fact">
          <Icon name="branch" size={14} />
          {row.gitBranch}
        </span>
      ) : null}
      {row.terminal?.state === "RUNNING" ? (
        <span class="fact fact-terminal">
          <Icon name="terminal" size={14} />
          in a terminal here
        </span>
      ) : null}
      <span class="fact">{model || agentName(row.agent)}</span>
      {tokens > 0 ? <span class="fact">{formatCount(tokens)} tokens</span> : null}
      {row.handedOffAt ? <span class="fact">handed off</span> : null}
    </span>
  );
}
