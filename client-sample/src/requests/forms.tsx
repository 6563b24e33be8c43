import { useState } from "preact/hooks";
import { scopes } from "../login/scopes.ts";
import { Diff } from "../session/Diff.tsx";
import { readToolInput } from "../session/toolInput.ts";
import { Markdown } from "../text/Markdown.tsx";
import { makeVisible } from "../text/visible.ts";
import type { FormProps } from "./RequestCard.tsx";

/** Longer inputs are folded at first, and must be unfolded before they can be allowed. */
const FOLDED_CHARACTERS = 1_500;
const NOTE_LIMIT_CHARACTERS = 8_000;

const SUGGESTIONS: Record<string, string> = {
  addDirectories: "Let it work in more folders.",
  addRules: "Allow this without asking from now on.",
  setMode: "Change its mode.",
};

/** Returns what a suggestion does, before the whole of it. An unknown one has no words. */
function suggestionWords(json: string): string {
  const type = /"type":"(\w+)"/.exec(json)?.[1] ?? "";
  return Object.hasOwn(SUGGESTIONS, type) ? (SUGGESTIONS[type] ?? "") : "";
}

/** Leave to use a tool: the whole input, what may be allowed for longer, yes or no. */
export function PermissionForm({ content, isBusy, onDecide }: FormProps) {
  const view = readToolInput(content.inputJson);
  const isLong = content.inputJson.length > FOLDED_CHARACTERS;
  const [isWhole, setWhole] = useState(!isLong);
  const [chosen, setChosen] = useState<number[]>([]);
  const offered = content.suggestions.flatMap((each, index) =>
    each.isForbidden || (each.needsAdmin && !scopes.value.admin) ? [] : [{ index, json: each.json }],
  );
  return (
    <>
      <Quote>
        <p class="request-tool">{makeVisible(content.toolName)}</p>
        {view.subject && !view.edit ? <pre class="code request-subject">{makeVisible(view.subject)}</pre> : null}
        {view.edit ? (
          <>
            <p class="path">{makeVisible(view.edit.path)}</p>
            <Diff before={makeVisible(view.edit.before)} after={makeVisible(view.edit.after)} />
          </>
        ) : null}
        <details open={isWhole && isLong} onToggle={(event) => event.currentTarget.open && setWhole(true)}>
          <summary>The whole input{isWhole ? "" : ": unfold it to allow"}</summary>
          <pre class="code code-whole" tabIndex={0} aria-label="The whole input">
            {makeVisible(view.json)}
          </pre>
        </details>
      </Quote>
      {onDecide && offered.length > 0 ? (
        <fieldset class="choices">
          <legend>Besides, if you allow it</legend>
          {offered.map(({ index, json }) => (
            <label key={index} class="check-field">
              <input
                type="checkbox"
                checked={chosen.includes(index)}
                onChange={(event) => setChosen(event.currentTarget.checked ? [...chosen, index] : chosen.filter((each) => each !== index))}
              />
              <span>
                {suggestionWords(json)} <code class="row-small">{makeVisible(json)}</code>
              </span>
            </label>
          ))}
        </fieldset>
      ) : null}
      {onDecide ? (
        <Verdict
          allow="Allow"
          deny="Deny"
          noteLabel="Note to the agent, if you deny it"
          canAllow={isWhole}
          isBusy={isBusy}
          onAllow={() => onDecide({ decision: "allow", note: "", selections: [...chosen].sort((a, b) => a - b) })}
          onDeny={(note) => onDecide({ decision: "deny", note, selections: [] })}
        />
      ) : null}
    </>
  );
}

/** Approval of a plan, or what to change about it. */
export function PlanForm({ content, isBusy, onDecide }: FormProps) {
  return (
    <>
      <Quote>
        <Markdown text={makeVisible(content.plan ?? content.inputJson)} />
      </Quote>
      {onDecide ? (
        <Verdict
          allow="Approve"
          deny="Send back"
          noteLabel="What to change, if you send it back"
          canAllow
          isBusy={isBusy}
          onAllow={() => onDecide({ decision: "allow", note: "", selections: [] })}
          onDeny={(note) => onDecide({ decision: "deny", note, selections: [] })}
        />
      ) : null}
    </>
  );
}

/** The frame for words of an agent: they must never pass for ours. */
export function Quote({ children }: { children: preact.ComponentChildren }) {
  return <blockquote class="agent-quote">{children}</blockquote>;
}

interface VerdictProps {
  allow: string;
  deny: string;
  noteLabel: string;
  canAllow: boolean;
  isBusy: boolean;
  onAllow: () => void;
  onDeny: (note: string) => void;
}

function Verdict({ allow, deny, noteLabel, canAllow, isBusy, onAllow, onDeny }: VerdictProps) {
  const [note, setNote] = useState("");
  return (
    <div class="verdict">
      <label class="wide">
        {noteLabel}
        <textarea rows={2} maxLength={NOTE_LIMIT_CHARACTERS} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
      </label>
      <button type="button" class="primary" disabled={isBusy || !canAllow || note.trim() !== ""} onClick={onAllow}>
        {allow}
      </button>
      <button type="button" disabled={isBusy} onClick={() => onDeny(note.trim())}>
        {deny}
      </button>
      {note.trim() ? <span class="muted">The note goes with “{deny}”.</span> : null}
    </div>
  );
}
