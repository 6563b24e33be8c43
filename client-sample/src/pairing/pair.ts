import { ask, payload } from "../api/ask.ts";
import { graphql } from "../api/graphql.ts";
import { makeDeviceKey } from "../keys/deviceKey.ts";
import { openEnvelope } from "../keys/envelope.ts";
import { keep, keepIdentity, type PendingPairing } from "../keys/identity.ts";
import type { PairingLink } from "./link.ts";
import { makePairRequest } from "./proof.ts";

const PairDevice = graphql(`
  mutation PairDevice($input: PairDeviceInput!) {
    pairDevice(input: $input) {
      __typename
      ... on PairDevicePayload {
        state retryAfterMs
        envelope {
          purpose hostId hostKeyId deviceId deviceKeyId subjectId sessionId messageId
          sealedAtMs expiresAtMs enc ciphertext
        }
      }
      ... on UserError { code message }
    }
  }
`);

/** How a pairing stands: the code to show and when to ask again, or that it is done. */
export type PairingStep = { code: string; retryAfterMs: number } | "paired";

const RETRY_MS = 2_000;

/** Makes the key and the request, and stores both before anything is sent. */
export async function beginPairing(link: PairingLink, name: string): Promise<PendingPairing> {
  const deviceKey = await makeDeviceKey();
  const pending: PendingPairing = {
    pairingId: link.pairingId,
    hostId: link.hostId,
    hostKey: link.hostKey,
    deviceKey,
    request: await makePairRequest(link, deviceKey, name, "web"),
  };
  await keep().write("pairing", pending);
  return pending;
}

/** Returns the pairing that a reload or a closed tab cut off; null without one. */
export async function findPendingPairing(): Promise<PendingPairing | null> {
  return (await keep().read("pairing")) ?? null;
}

export async function dropPairing(): Promise<void> {
  await keep().remove("pairing");
}

/** Asks once; throws `Refused` or `EnvelopeRefused`. Safe to repeat at any point. */
export async function askToPair(pending: PendingPairing): Promise<PairingStep> {
  const answer = await ask(PairDevice, { input: pending.request }, { anonymous: true });
  const { state, envelope, retryAfterMs } = payload(answer.pairDevice, "PairDevicePayload");
  const { hostId, hostKey, deviceKey } = pending;
  const isDone = state === "DONE";
  const content = await openEnvelope(
    // The host names the device once it has one; until then it has no id.
    { hostId, hostKey, deviceKey, deviceId: isDone ? envelope.deviceId : "" },
    envelope,
    { purpose: isDone ? "credentials" : "pairing-code", subjectId: pending.pairingId, sessionId: "" },
  );
  if (!isDone) return { code: String(content["code"]), retryAfterMs: retryAfterMs ?? RETRY_MS };
  await keepIdentity({
    deviceId: String(content["deviceId"]),
    token: String(content["token"]),
    hostId,
    hostKey,
    deviceKey,
  });
  return "paired";
}
