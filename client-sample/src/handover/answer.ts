import { ask, payload, Refused } from "../api/ask.ts";
import { type Envelope, openEnvelope, sealEnvelope } from "../keys/envelope.ts";
import { ends } from "../keys/identity.ts";
import { AnswerHandover, DismissHandover, type OfferRow } from "./documents.ts";

/** What an offer says, once it is opened. */
export interface OfferText {
  question: string;
  summary: string;
  title: string;
  folder: string;
}

export const ANSWER_LIMIT_CHARACTERS = 8_000;

/** Opens an offer; null where it is not sealed for this browser. */
export async function openOffer(offer: OfferRow): Promise<OfferText | null> {
  const both = ends();
  if (!both || !offer.envelope) return null;
  const content = await openEnvelope(both, offer.envelope, {
    purpose: "offer",
    subjectId: offer.id,
    sessionId: offer.envelope.sessionId,
  });
  const text = (name: string) => String(content[name] ?? "");
  return { question: text("question"), summary: text("summary"), title: text("title"), folder: text("folder") };
}

/** Seals an answer; question and summary go along, for when the transcript is gone. */
export async function sealAnswer(offer: OfferRow, text: OfferText, answer: string): Promise<Envelope> {
  const both = ends();
  if (!both || !offer.envelope) throw new Refused("DEVICE_KEY_REQUIRED", "Pair this browser to answer from here.");
  const { sessionId, expiresAtMs } = offer.envelope;
  const subject = { purpose: "handover-answer", subjectId: offer.id, sessionId, expiresAtMs };
  return sealEnvelope(both, subject, { answer, question: text.question, summary: text.summary });
}

export async function sendAnswer(offerId: string, envelope: Envelope): Promise<void> {
  const { answerHandover } = await ask(AnswerHandover, { input: { offerId, envelope } });
  payload(answerHandover, "AnswerHandoverPayload");
}

export async function dismissOffer(offerId: string): Promise<void> {
  const { dismissHandover } = await ask(DismissHandover, { input: { offerId } });
  payload(dismissHandover, "DismissHandoverPayload");
}
