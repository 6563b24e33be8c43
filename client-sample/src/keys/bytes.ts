/** Encodings of docs/handover-protocol.md, "Notation". */
export type Bytes = Uint8Array<ArrayBuffer>;

export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Throws `DOMException` for what is not Base64. */
export function fromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromBase64Url(text: string): Bytes {
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns several parts as one byte string: two different lists never give the same. */
export function pae(parts: readonly (string | Uint8Array)[]): Bytes {
  const chunks = parts.map((part) => (typeof part === "string" ? utf8(part) : part));
  const length = 4 + chunks.reduce((sum, chunk) => sum + 4 + chunk.length, 0);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, chunks.length);
  let at = 4;
  for (const chunk of chunks) {
    view.setUint32(at, chunk.length);
    bytes.set(chunk, at + 4);
    at += 4 + chunk.length;
  }
  return bytes;
}
