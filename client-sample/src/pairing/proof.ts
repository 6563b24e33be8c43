import { type Bytes, pae, toBase64, utf8 } from "../keys/bytes.ts";
import type { DeviceKey } from "../keys/deviceKey.ts";
import type { PairRequest } from "../keys/identity.ts";
import type { PairingLink } from "./link.ts";

const NONCE_BYTES = 16;

/**
 * Makes the request that proves that this browser read the link, without sending the
 * secret (docs/handover-protocol.md, "The proof"). Repeat it byte for byte.
 */
export async function makePairRequest(
  link: PairingLink,
  key: DeviceKey,
  name: string,
  platform: string,
  nonce: Bytes = crypto.getRandomValues(new Uint8Array(NONCE_BYTES)),
): Promise<PairRequest> {
  const transcript = pae([
    "sidestage/pair/v1", link.pairingId, link.hostId, link.hostKey, key.publicKey, name, platform, nonce,
  ]);
  const proof = await crypto.subtle.sign("HMAC", await proofKey(link.secret), transcript);
  return {
    pairingId: link.pairingId,
    deviceKey: toBase64(key.publicKey),
    name,
    platform,
    nonce: toBase64(nonce),
    proof: toBase64(new Uint8Array(proof)),
  };
}

async function proofKey(secret: Bytes): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
  return crypto.subtle.deriveKey(
    { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: utf8("sidestage/pair/v1") },
    material,
    { name: "HMAC", hash: "SHA-256", length: 256 },
    false,
    ["sign"],
  );
}
