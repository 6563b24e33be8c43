import { type Bytes, toBase64Url, utf8 } from "./bytes.ts";

/** This browser's key. The private half can be used by scripts here, and read by none. */
export interface DeviceKey {
  privateKey: CryptoKey;
  publicKey: Bytes;
}

const KEY_ID_BYTES = 12;

/**
 * Tells why this browser cannot hold a key, in a sentence; null if it can. WebCrypto
 * exists on HTTPS and localhost only.
 */
export function whyNoKeys(): string | null {
  if (isSecureContext && crypto.subtle && indexedDB) return null;
  return (
    "This address is plain http, and there a browser can neither keep a key nor trust the page. " +
    "Open Sidestage by https (a TLS proxy or a tunnel, named in public_urls), and pair there."
  );
}

/** Makes a key; throws `DOMException` where the browser has no X25519. */
export async function makeDeviceKey(): Promise<DeviceKey> {
  const pair = (await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"])) as CryptoKeyPair;
  const publicKey = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  return { privateKey: pair.privateKey, publicKey };
}

/** Returns what envelopes call a key by. */
export async function keyIdOf(publicKey: Uint8Array): Promise<string> {
  const named = new Uint8Array([...utf8("sidestage/key/v1"), ...publicKey]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", named));
  return toBase64Url(digest.subarray(0, KEY_ID_BYTES));
}
