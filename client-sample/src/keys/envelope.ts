import { type Bytes, fromBase64, pae, toBase64, toBase64Url, utf8 } from "./bytes.ts";
import { type DeviceKey, keyIdOf } from "./deviceKey.ts";

/** A sealed message with the clear fields its seal covers (docs/handover-protocol.md). */
export interface Envelope {
  purpose: string;
  hostId: string;
  hostKeyId: string;
  deviceId: string;
  deviceKeyId: string;
  subjectId: string;
  sessionId: string;
  messageId: string;
  sealedAtMs: string;
  expiresAtMs: string;
  enc: string;
  ciphertext: string;
}

/** Both ends: the host's pinned key, and this browser's. */
export interface Ends {
  hostId: string;
  hostKey: Bytes;
  deviceId: string;
  deviceKey: DeviceKey;
}

/** What an envelope is about. */
export interface Subject {
  purpose: string;
  subjectId: string;
  sessionId: string;
  expiresAtMs: string;
}

/** The envelope is not the host's, not for us, or not for this. */
export class EnvelopeRefused extends Error {}

const PADDED_TO_BYTES = 256;
const MESSAGE_ID_BYTES = 16;

// Loaded when first needed: who only looks on needs no cryptography.
async function loadSuite() {
  const [{ CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 }, { Chacha20Poly1305 }] = await Promise.all([
    import("@hpke/core"),
    import("@hpke/chacha20poly1305"),
  ]);
  return new CipherSuite({
    kem: new DhkemX25519HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Chacha20Poly1305(),
  });
}

let suite: ReturnType<typeof loadSuite> | null = null;

function getSuite(): ReturnType<typeof loadSuite> {
  suite ??= loadSuite();
  return suite;
}

/** Opens an envelope of the host's and returns its content; throws `EnvelopeRefused`. */
export async function openEnvelope(
  ends: Ends,
  envelope: Envelope,
  expected: Pick<Subject, "purpose" | "subjectId" | "sessionId">,
): Promise<Record<string, unknown>> {
  await checkAddressed(ends, envelope, expected);
  const hpke = await getSuite();
  try {
    const recipient = await hpke.createRecipientContext({
      recipientKey: await keyPair(ends.deviceKey),
      enc: fromBase64(envelope.enc),
      info: infoOf(envelope.purpose),
      senderPublicKey: await hpke.kem.deserializePublicKey(ends.hostKey),
    });
    const bytes = await recipient.open(fromBase64(envelope.ciphertext), aadOf(envelope));
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Record<string, unknown>;
  } catch (error) {
    throw new EnvelopeRefused("This message could not be opened.", { cause: error });
  }
}

async function checkAddressed(
  ends: Ends,
  envelope: Envelope,
  expected: Pick<Subject, "purpose" | "subjectId" | "sessionId">,
): Promise<void> {
  const right =
    envelope.purpose === expected.purpose &&
    envelope.subjectId === expected.subjectId &&
    envelope.sessionId === expected.sessionId &&
    envelope.hostId === ends.hostId &&
    envelope.deviceId === ends.deviceId &&
    envelope.hostKeyId === (await keyIdOf(ends.hostKey)) &&
    envelope.deviceKeyId === (await keyIdOf(ends.deviceKey.publicKey));
  if (!right) throw new EnvelopeRefused("This message is for something else.");
}

/** Seals *content* for the host. Keep the envelope: the same one again is a retry. */
export async function sealEnvelope(
  ends: Ends,
  subject: Subject,
  content: Record<string, unknown>,
): Promise<Envelope> {
  const header = {
    ...subject,
    hostId: ends.hostId,
    hostKeyId: await keyIdOf(ends.hostKey),
    deviceId: ends.deviceId,
    deviceKeyId: await keyIdOf(ends.deviceKey.publicKey),
    messageId: toBase64Url(crypto.getRandomValues(new Uint8Array(MESSAGE_ID_BYTES))),
    sealedAtMs: String(Date.now()),
  };
  const hpke = await getSuite();
  const sender = await hpke.createSenderContext({
    recipientPublicKey: await hpke.kem.deserializePublicKey(ends.hostKey),
    info: infoOf(subject.purpose),
    senderKey: await keyPair(ends.deviceKey),
  });
  const text = padded(JSON.stringify({ v: 1, ...content }));
  const ciphertext = await sender.seal(text, aadOf(header));
  return {
    purpose: header.purpose,
    hostId: header.hostId,
    hostKeyId: header.hostKeyId,
    deviceId: header.deviceId,
    deviceKeyId: header.deviceKeyId,
    subjectId: header.subjectId,
    sessionId: header.sessionId,
    messageId: header.messageId,
    sealedAtMs: header.sealedAtMs,
    expiresAtMs: header.expiresAtMs,
    enc: toBase64(new Uint8Array(sender.enc)),
    ciphertext: toBase64(new Uint8Array(ciphertext)),
  };
}

async function keyPair(key: DeviceKey): Promise<CryptoKeyPair> {
  const hpke = await getSuite();
  return { privateKey: key.privateKey, publicKey: await hpke.kem.deserializePublicKey(key.publicKey) };
}

function infoOf(purpose: string): Bytes {
  return utf8(`sidestage/hpke/v1/${purpose}`);
}

function aadOf(header: Omit<Envelope, "enc" | "ciphertext">): Bytes {
  return pae([
    "sidestage/envelope/v1",
    header.purpose,
    header.hostId,
    header.hostKeyId,
    header.deviceId,
    header.deviceKeyId,
    header.subjectId,
    header.sessionId,
    header.messageId,
    header.sealedAtMs,
    header.expiresAtMs,
  ]);
}

function padded(text: string): Bytes {
  const bytes = utf8(text);
  const whole = new Uint8Array(Math.ceil(bytes.length / PADDED_TO_BYTES) * PADDED_TO_BYTES).fill(0x20);
  whole.set(bytes);
  return whole;
}
