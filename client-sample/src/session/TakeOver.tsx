import { useRef } from "preact/hooks";
import { ask, payload } from "../api/ask.ts";
import { TakeOver } from "../handover/documents.ts";
import { go } from "../router.ts";
import { markStarted } from "../terminal/opening.ts";
import { makeUuid } from "../text/uuid.ts";
import { Notice } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";

/** Goes on here with a copy of a live session whose turn has ended. */
export function TakeOverButton({ sessionId }: { sessionId: string }) {
  const key = useRef(makeUuid());
  const action = useAction(async () => {
    const { takeOverSession: answer } = await ask(TakeOver, { input: { sessionId, idempotencyKey: key.current } });
    if (answer.__typename === "OutsideSessionResumed" && answer.openTerminal) {
      go("terminal", answer.openTerminal.id);
      return;
    }
    if (answer.__typename !== "TakeOverSessionPayload") key.current = makeUuid();
    const { terminal } = payload(answer, "TakeOverSessionPayload");
    markStarted(terminal.id);
    go("terminal", terminal.id);
  });
  return (
    <div class="actions">
      <button type="button" disabled={action.isBusy} onClick={action.run}>
        {action.isBusy ? "Starting…" : "Take over"}
      </button>
      <span class="muted">Goes on here with a copy; the one at the keyboard stays as it is.</span>
      {action.failure ? <Notice tone="bad">{action.failure}</Notice> : null}
    </div>
  );
}
