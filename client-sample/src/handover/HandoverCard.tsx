import { useEffect, useState } from "preact/hooks";
import { linkState } from "../api/link.ts";
import { scopes } from "../login/scopes.ts";
import { Quote } from "../requests/forms.tsx";
import { addressOf } from "../router.ts";
import { Markdown } from "../text/Markdown.tsx";
import { asksForSecret, looksSecret } from "../text/secrets.ts";
import { Age, Notice } from "../ui/parts.tsx";
import { useAction } from "../ui/useAction.ts";
import { ANSWER_LIMIT_CHARACTERS, dismissOffer, type OfferText, openOffer, sealAnswer, sendAnswer } from "./answer.ts";
import type { OfferRow } from "./documents.ts";
import { type Draft, dropDraft, keepDraft, readDraft } from "./drafts.ts";

/** A question in which a turn ended, in every state it may have. */
export function HandoverCard({ offer, place }: { offer: OfferRow; place: string }) {
  const text = useOfferText(offer);
  const isOpen = offer.state === "PENDING";
  return (
    <section class={`request card${isOpen ? " request-open" : ""}`} aria-label="The agent asks how to go on">
      <header class="request-head">
        <h2>The agent in {place} asks how to go on</h2>
        <span class="muted">
          <Age at={offer.createdAt} />
        </span>
      </header>
      {text && (isOpen || offer.state === "ANSWERING") ? (
        <Quote>
          <Markdown text={text.question} />
          {text.summary ? (
            <details>
              <summary>What went before</summary>
              <p class="plain">{text.summary}</p>
            </details>
          ) : null}
        </Quote>
      ) : null}
      {isOpen ? <Pending offer={offer} text={text} /> : <Settled offer={offer} />}
    </section>
  );
}

/** Opens the offer's envelope; null while it is not open, or not for this browser. */
function useOfferText(offer: OfferRow): OfferText | null {
  const [text, setText] = useState<OfferText | null>(null);
  useEffect(() => {
    let isShown = true;
    openOffer(offer).then(
      (opened) => isShown && setText(opened),
      // What does not open is shown as what it is: nothing to answer here.
      () => isShown && setText(null),
    );
    return () => {
      isShown = false;
    };
  }, [offer.id, offer.envelope?.messageId]);
  return text;
}

function Pending({ offer, text }: { offer: OfferRow; text: OfferText | null }) {
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
  if (!text) return <p class="reason">It could not be sealed for this browser. Answer at the keyboard.</p>;
  return <AnswerForm offer={offer} text={text} />;
}

function AnswerForm({ offer, text }: { offer: OfferRow; text: OfferText }) {
  const [draft, setDraft] = useState<Draft>(() => readDraft(offer.id));
  const change = (next: Draft) => {
    setDraft(next);
    keepDraft(offer.id, next);
  };
  const sending = useAction(async () => {
    // What was sent before is sent again as it is; an edited answer is sealed anew.
    const envelope = draft.sent ?? (await sealAnswer(offer, text, draft.text));
    change({ ...draft, sent: envelope });
    await sendAnswer(offer.id, envelope);
  });
  const dismissing = useAction(async () => {
    await dismissOffer(offer.id);
    dropDraft(offer.id);
  });
  const isCommand = draft.text.trimStart().startsWith("/");
  const isRisky = asksForSecret(text.question) || looksSecret(draft.text);
  return (
    <form
      class="answer"
      onSubmit={(event) => {
        event.preventDefault();
        void sending.run();
      }}
    >
      <label>
        Your answer
        <textarea
          rows={4}
          maxLength={ANSWER_LIMIT_CHARACTERS}
          value={draft.text}
          onInput={(event) => change({ text: event.currentTarget.value, sent: null })}
        />
      </label>
      {isCommand ? (
        <Notice>
          An answer that begins with / would run a command of the agent.{" "}
          <button type="button" onClick={() => change({ text: `My answer: ${draft.text.trimStart()}`, sent: null })}>
            Put “My answer: ” before it
          </button>
        </Notice>
      ) : null}
      {isRisky ? <Notice>Your answer will stand in the conversation's file in clear. Sidestage never asks for passwords or keys.</Notice> : null}
      {offer.lastFailure ? <Notice tone="bad">The last try came to nothing: {offer.lastFailure.message}</Notice> : null}
      {sending.failure ?? dismissing.failure ? <Notice tone="bad">{sending.failure ?? dismissing.failure}</Notice> : null}
      <div class="verdict">
        <button type="submit" class="primary" disabled={sending.isBusy || !draft.text.trim() || isCommand}>
          {sending.isBusy ? "Sending…" : draft.sent && (sending.failure || offer.lastFailure) ? "Try again" : "Send"}
        </button>
        <button type="button" class="quiet" disabled={dismissing.isBusy} onClick={dismissing.run}>
          Not a question
        </button>
        <span class="muted">
          {offer.delivery === "TYPE"
            ? "It is typed into the agent's terminal here."
            : "It continues a copy of the conversation here; the one at the keyboard stays as it is."}
        </span>
      </div>
    </form>
  );
}

const BLOCKS: Record<string, string> = {
  BUSY: "The agent works on something else.",
  DIALOG: "The agent shows a dialog. Answer it in its terminal.",
  NOT_CONFIRMED: "It was typed, but the conversation does not show it yet.",
  NOT_READY: "The agent is still starting.",
  PROMPT_BOX_IN_USE: "Somebody's unsent text stands in the agent's box.",
  TERMINAL_ENDED: "Its terminal ended before the answer arrived.",
};

const SETTLED: Record<string, string> = {
  CLOSED: "The session ended first. It can be resumed.",
  SUPERSEDED: "The session went on at its keyboard.",
  DISMISSED: "It was put away.",
  EXPIRED: "Nobody answered in time.",
};

function Settled({ offer }: { offer: OfferRow }) {
  useEffect(() => {
    if (offer.state !== "ANSWERING") dropDraft(offer.id);
  }, [offer.id, offer.state]);
  if (offer.state === "ANSWERING") {
    return (
      <div class="actions">
        <p class="reason">{BLOCKS[offer.blockedBy ?? ""] ?? "Your answer is on its way to the agent…"}</p>
        {offer.terminal ? (
          <a class="button" href={addressOf("terminal", offer.terminal.id)}>
            Open its terminal
          </a>
        ) : null}
      </div>
    );
  }
  if (offer.state === "CONTINUED") {
    return (
      <div class="actions">
        <p class="reason">Your answer arrived.</p>
        {offer.continuation ? (
          <a class="button" href={addressOf("session", offer.continuation.id)}>
            Go on reading
          </a>
        ) : null}
      </div>
    );
  }
  return <p class="reason">{SETTLED[offer.state] ?? "It is settled."}</p>;
}
