import { ask, payload, Refused } from "../api/ask.ts";
import { pae, toHex } from "../keys/bytes.ts";
import { type Envelope, sealEnvelope } from "../keys/envelope.ts";
import { ends } from "../keys/identity.ts";
import { AnswerRequest, type RequestContent, type RequestRow } from "./documents.ts";

/** What a person chose for one question. */
export interface Selection {
  options: number[];
  text: string;
}

/** What a device says to a request; `note` goes with deny only. */
export interface Decision {
  decision: "allow" | "deny" | "answer";
  note: string;
  selections: number[] | Selection[];
}

/**
 * Returns the digest of what was shown. It is computed here, from the very texts on the
 * page, and not copied from the server: then what runs is what was seen.
 */
export async function digestOf({ toolName, inputJson }: Pick<RequestContent, "toolName" | "inputJson">): Promise<string> {
  const bytes = pae(["sidestage/request/v1", toolName, inputJson]);
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** Seals a decision for the request; throws `Refused` on a browser that is not paired. */
export async function sealDecision(request: RequestRow, content: RequestContent, decision: Decision): Promise<Envelope> {
  const both = ends();
  if (!both) throw new Refused("DEVICE_KEY_REQUIRED", "Pair this browser to answer from here.");
  const { id: subjectId, sessionId, expiresAtMs } = request;
  const subject = { purpose: "request-answer", subjectId, sessionId, expiresAtMs };
  return sealEnvelope(both, subject, { ...decision, shown: await digestOf(content) });
}

/** Sends it; after a lost connection the same envelope again is safe. */
export async function sendDecision(requestId: string, envelope: Envelope): Promise<void> {
  const { answerRequest } = await ask(AnswerRequest, { input: { requestId, envelope } });
  payload(answerRequest, "AnswerRequestPayload");
}
