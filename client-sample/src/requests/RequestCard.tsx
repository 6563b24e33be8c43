import { useRef, useState } from "preact/hooks";
import { Refused } from "../api/ask.ts";
import { linkState } from "../api/link.ts";
import type { Envelope } from "../keys/envelope.ts";
import { scopes } from "../login/scopes.ts";
import { addressOf } from "../router.ts";
import { Age, Notice } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { type Decision, sealDecision, sendDecision } from "./answer.ts";
import type { RequestContent, RequestRow } from "./documents.ts";
import { PermissionForm, PlanForm } from "./forms.tsx";
import { QuestionForm } from "./QuestionForm.tsx";

const TITLES: Record<string, string> = {
  PERMISSION: "asks for permission",
  PLAN: "wants its plan approved",
  QUESTION: "asks you",
};

/** What a session waits for, in every state it may have. */
export function RequestCard({ request, place }: { request: RequestRow; place: string }) {
  const isOpen = request.state === "PENDING";
  return (
    <section class={`request card${isOpen ? " request-open" : ""}`} aria-label={`The agent ${TITLES[request.kind] ?? "waits for you"}`}>
      <header class="request-head">
        <h2>
          The agent in {place} {TITLES[request.kind] ?? "waits for you"}
        </h2>
        <span class="muted">
          <Age at={request.createdAt} />
        </span>
      </header>
      {isOpen ? <Pending request={request} /> : <p class="reason">{describeState(request)}</p>}
    </section>
  );
}

function Pending({ request }: { request: RequestRow }) {
  const { content } = request;
  const answering = useAnswering(request);
  if (!content) return <p class="reason">Its text is not shown here. Answer it at the keyboard.</p>;
  const whyNot = whyNotHere();
  const props = { content, isBusy: answering.isBusy, onDecide: whyNot ? null : answering.decide };
  return (
    <>
      {request.kind === "QUESTION" ? (
        <QuestionForm {...props} />
      ) : request.kind === "PLAN" ? (
        <PlanForm {...props} />
      ) : (
        <PermissionForm {...props} />
      )}
      {whyNot}
      {answering.failure ? (
        <Notice tone="bad">
          {answering.failure}{" "}
          {answering.canRepeat ? (
            <button type="button" onClick={() => void answering.repeat()}>
              Send it again
            </button>
          ) : null}
        </Notice>
      ) : null}
    </>
  );
}

function whyNotHere() {
  if (linkState.value.kind === "offline") {
    return <p class="reason">The server is away: answer at your device. What you wrote is kept.</p>;
  }
  if (!scopes.value.answer) {
    return (
      <p class="reason">
        Answer at the keyboard, or <a href={addressOf("pair")}>pair this browser</a> to answer from here.
      </p>
    );
  }
  return null;
}

export interface FormProps {
  content: RequestContent;
  isBusy: boolean;
  /** Null where this browser cannot answer: what is asked is shown all the same. */
  onDecide: ((decision: Decision) => void) | null;
}

/** Seals once a decision, and sends the very same envelope again after a lost answer. */
function useAnswering(request: RequestRow) {
  const envelope = useRef<Envelope | null>(null);
  const decision = useRef<Decision | null>(null);
  const [canRepeat, setCanRepeat] = useState(false);
  const action = useAction(async () => {
    if (!request.content || !decision.current) return;
    envelope.current ??= await sealDecision(request, request.content, decision.current);
    try {
      await sendDecision(request.id, envelope.current);
    } catch (error) {
      const isLost = error instanceof Refused && error.code === "OFFLINE";
      setCanRepeat(isLost);
      if (!isLost) envelope.current = null;
      throw error;
    }
  });
  return {
    isBusy: action.isBusy,
    failure: action.failure,
    canRepeat,
    repeat: action.run,
    decide: (chosen: Decision) => {
      decision.current = chosen;
      envelope.current = null;
      void action.run();
    },
  };
}

const ENDS: Record<string, string> = {
  DEVICE: "Answered from a device.",
  KEYBOARD: "Answered at the keyboard.",
  POLICY: "Withdrawn: its folder is not looked after any more.",
  SESSION_ENDED: "Withdrawn: the agent's process ended or moved on.",
  TIME_OUT: "Nobody answered in time, and the agent went on. That was nobody's no.",
};

function describeState(request: RequestRow): string {
  switch (request.state) {
    case "ANSWERING":
      return "Your answer is on its way to the agent…";
    case "ANSWERED":
      return request.verdict === "DENY" ? "Refused from a device." : "Answered from a device.";
    case "KEYBOARD_ONLY":
      return "Only the agent's own dialog can answer this now: answer at the keyboard.";
    default:
      return ENDS[request.settledBy ?? ""] ?? "It is settled.";
  }
}
