import { Markdown } from "../text/Markdown.tsx";
import { formatTime } from "../text/ages.ts";
import { memo } from "../ui/memo.ts";
import { Diff } from "./Diff.tsx";
import type { EntryRow } from "./documents.ts";
import type { Item } from "./order.ts";
import { readToolInput } from "./toolInput.ts";

/** A folded output shows this many lines, so that a glance tells how it went. */
const PEEK_LINES = 1;

/** One entry of a transcript. */
export const EntryView = memo(function EntryView({ entry, result }: Item) {
  switch (entry.__typename) {
    case "PromptEntry":
      return (
        <Speech who="You" kind="prompt" entry={entry}>
          <p class="plain" dir="auto">
            {entry.body.text}
          </p>
        </Speech>
      );
    case "MessageEntry":
      return (
        <Speech who="Agent" kind="message" entry={entry}>
          <Markdown text={entry.body.text ?? ""} />
        </Speech>
      );
    case "ToolCallEntry":
      return <ToolView entry={entry} result={result} />;
    case "ToolResultEntry":
      return <Folded title="Result" peek={firstLine(entry)} entry={entry} />;
    case "ThinkingEntry":
      return <Folded title="Thought" peek={firstLine(entry)} entry={entry} />;
    case "CompactionEntry":
      return <Folded title="The conversation was compacted" peek="" entry={entry} />;
    case "CommandEntry":
      return <Folded title="Command" peek={firstLine(entry)} entry={entry} />;
    case "InterruptionEntry":
      return <p class="entry-note">You interrupted the agent.</p>;
    case "NoticeEntry":
      return entry.body.text ? <p class="entry-note">{entry.body.text}</p> : null;
    default:
      // A record this server or this client does not know: its text, if it has one.
      return entry.body.text ? <Folded title="Other record" peek={firstLine(entry)} entry={entry} /> : null;
  }
});

interface SpeechProps {
  who: string;
  kind: "prompt" | "message";
  entry: EntryRow;
  children: preact.ComponentChildren;
}

function Speech({ who, kind, entry, children }: SpeechProps) {
  return (
    <article class={`entry entry-${kind}`}>
      <header class="entry-head">
        <span class="entry-who">{who}</span>
        {entry.at ? <time dateTime={entry.at}>{formatTime(entry.at)}</time> : null}
      </header>
      {children}
      {entry.body.truncated ? <p class="muted">The rest of this text is in the agent's own file.</p> : null}
    </article>
  );
}

function ToolView({ entry, result }: Item) {
  if (entry.__typename !== "ToolCallEntry") return null;
  const view = readToolInput(entry.toolCall?.inputJson ?? "");
  const outcome = outcomeOf(result);
  return (
    <details class={`tool${outcome === "failed" ? " tool-failed" : ""}`} open={view.edit !== null}>
      <summary>
        <span class="tool-name">{entry.toolCall?.name ?? "Tool"}</span>
        <span class="tool-subject">{view.subject.split("\n", PEEK_LINES)[0]}</span>
        {outcome ? <span class="tool-outcome">{outcome}</span> : null}
      </summary>
      {view.edit ? <Diff before={view.edit.before} after={view.edit.after} /> : <Input view={view} />}
      {result?.body.text && !view.edit ? (
        <pre class="code" tabIndex={0} aria-label="Output">
          {result.body.text}
        </pre>
      ) : null}
    </details>
  );
}

function Input({ view }: { view: ReturnType<typeof readToolInput> }) {
  return (
    <pre class="code" tabIndex={0} aria-label="Input">
      {view.json}
    </pre>
  );
}

function outcomeOf(result: EntryRow | null): string {
  if (result?.__typename !== "ToolResultEntry") return "";
  if (result.toolResult?.denied) return "refused";
  return result.toolResult?.isError ? "failed" : "";
}

function Folded({ title, peek, entry }: { title: string; peek: string; entry: EntryRow }) {
  return (
    <details class="tool">
      <summary>
        <span class="tool-name">{title}</span>
        <span class="tool-subject">{peek}</span>
      </summary>
      <pre class="code" tabIndex={0} aria-label={title}>
        {entry.body.text}
      </pre>
    </details>
  );
}

function firstLine(entry: EntryRow): string {
  return entry.body.text?.trimStart().split("\n", PEEK_LINES)[0] ?? "";
}
