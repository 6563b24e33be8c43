import { type Bytes, fromBase64Url } from "../keys/bytes.ts";

/** What a pairing link says. */
export interface PairingLink {
  pairingId: string;
  secret: Bytes;
  hostKey: Bytes;
  hostId: string;
}

const FORM = /^1\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})\.([\x21-\x2d\x2f-\x7e]{1,128})$/;

/** Reads the part of a link behind its `#`, or a whole link; null if it is none. */
export function parsePairingLink(text: string): PairingLink | null {
  const fragment = text.trim().split("#").at(-1) ?? "";
  const match = FORM.exec(decodeURIComponent(fragment));
  if (!match) return null;
  const [, pairingId = "", secret = "", hostKey = "", hostId = ""] = match;
  return { pairingId, secret: fromBase64Url(secret), hostKey: fromBase64Url(hostKey), hostId };
}

/** Takes a pairing link out of the address; null without one. */
export function takePairingLink(): PairingLink | null {
  const { hash } = location;
  if (!hash.startsWith("#1.")) return null;
  // Before anything else: history and screen shares must not keep the secret.
  history.replaceState(null, "", location.pathname);
  try {
    return parsePairingLink(hash);
  } catch {
    return null;
  }
}
