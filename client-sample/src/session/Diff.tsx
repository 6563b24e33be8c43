import { diffLines } from "diff";
import { useMemo } from "preact/hooks";

/** Longer texts are shown without comparing them line by line: that could take long. */
const COMPARED_LIMIT = 60_000;
/** Unchanged lines shown around a change. */
const CONTEXT_LINES = 3;

interface Line {
  kind: "added" | "removed" | "same" | "gap";
  text: string;
}

/** Shows what an edit changes, line by line. */
export function Diff({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => compare(before, after), [before, after]);
  return (
    <div class="diff" tabIndex={0} role="region" aria-label="Change">
      {lines.map((line, index) => (
        <div key={index} class={`diff-${line.kind}`}>
          <span class="diff-sign" aria-hidden="true">
            {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : " "}
          </span>
          {line.kind === "added" ? <span class="hidden">added: </span> : null}
          {line.kind === "removed" ? <span class="hidden">removed: </span> : null}
          <span>{line.text}</span>
        </div>
      ))}
    </div>
  );
}

function compare(before: string, after: string): Line[] {
  if (before === "") return split(after).map((text) => ({ kind: "added", text }));
  if (before.length + after.length > COMPARED_LIMIT) {
    return [
      ...split(before).map((text): Line => ({ kind: "removed", text })),
      ...split(after).map((text): Line => ({ kind: "added", text })),
    ];
  }
  const changes = diffLines(before, after);
  return changes.flatMap((change, index) => {
    const kind = change.added ? "added" : change.removed ? "removed" : "same";
    const lines = split(change.value).map((text): Line => ({ kind, text }));
    return kind === "same" ? shorten(lines, index === 0, index === changes.length - 1) : lines;
  });
}

function shorten(lines: Line[], isFirst: boolean, isLast: boolean): Line[] {
  const head = isFirst ? 0 : CONTEXT_LINES;
  const tail = isLast ? 0 : CONTEXT_LINES;
  if (lines.length <= head + tail + 1) return lines;
  const gap: Line = { kind: "gap", text: `${lines.length - head - tail} unchanged lines` };
  return [...lines.slice(0, head), gap, ...(tail ? lines.slice(-tail) : [])];
}

function split(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}
