import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fromBase64, toBase64, toHex } from "../src/keys/bytes.ts";
import { type DeviceKey, keyIdOf } from "../src/keys/deviceKey.ts";
import { type Ends, type Envelope, EnvelopeRefused, openEnvelope, sealEnvelope } from "../src/keys/envelope.ts";
import { parsePairingLink } from "../src/pairing/link.ts";
import { makePairRequest } from "../src/pairing/proof.ts";
import { digestOf } from "../src/requests/answer.ts";

const read = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, "../../docs/vectors", `${name}.json`), "utf8"));
const fromHex = (text: string) => new Uint8Array(Buffer.from(text, "hex"));

async function keyOf(secret: string, publicKey: string): Promise<DeviceKey> {
  const pkcs8 = new Uint8Array([...fromHex("302e020100300506032b656e04220420"), ...fromHex(secret)]);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, false, ["deriveBits"]);
  return { privateKey, publicKey: fromHex(publicKey) };
}

it("proves that it read the link, as the vectors say", async () => {
  const vector = read("pairing");
  const link = parsePairingLink(vector.link);
  expect(link).toMatchObject({ pairingId: vector.pairingId, hostId: vector.hostId });
  if (!link) throw new Error("no link");
  expect(toHex(link.hostKey)).toBe(vector.hostKey);
  const key = await keyOf(vector.secret.repeat(2), vector.deviceKey);
  const request = await makePairRequest(link, key, vector.name, vector.platform, fromHex(vector.nonce));
  expect(toHex(fromBase64(request.proof))).toBe(vector.proof);
});

it.each(["", "1.x", "2.AAAAAAAAAAAAAAAAAAAAAA.AAECAwQFBgcICQoLDA0ODw.x.h", "https://host.example/pair"])("takes %j for no link", (text) => {
  expect(parsePairingLink(text)).toBeNull();
});

it("names keys as the vectors do", async () => {
  for (const { key, keyId } of read("keys").keyIds) expect(await keyIdOf(fromHex(key))).toBe(keyId);
});

async function vectorEnds() {
  const vectors = read("envelopes");
  const offer = vectors.vectors.find(({ envelope }: { envelope: Envelope }) => envelope.purpose === "offer");
  const envelope: Envelope = { ...offer.envelope };
  const ends: Ends = {
    hostId: envelope.hostId,
    hostKey: fromHex(vectors.hostKey),
    deviceId: envelope.deviceId,
    deviceKey: await keyOf(vectors.deviceSecret, vectors.deviceKey),
  };
  return { envelope, ends, text: offer.text as string, vectors };
}

it("opens the offer of the vectors, and not when one field of it is changed", async () => {
  const { envelope, ends, text } = await vectorEnds();
  const expected = { purpose: "offer", subjectId: envelope.subjectId, sessionId: envelope.sessionId };
  expect(await openEnvelope(ends, envelope, expected)).toEqual(JSON.parse(text));
  for (const name of Object.keys(envelope) as (keyof Envelope)[]) {
    if (name === "enc" || name === "ciphertext") continue;
    const changed = { ...envelope, [name]: `${envelope[name]}1` };
    await expect(openEnvelope(ends, changed, expected), name).rejects.toThrow(EnvelopeRefused);
  }
});

it("refuses a good envelope that came with another object, or for another purpose", async () => {
  const { envelope, ends } = await vectorEnds();
  const right = { purpose: "offer", subjectId: envelope.subjectId, sessionId: envelope.sessionId };
  for (const name of ["purpose", "subjectId", "sessionId"] as const) {
    await expect(openEnvelope(ends, envelope, { ...right, [name]: "other" }), name).rejects.toThrow(EnvelopeRefused);
  }
});

it("seals for the host alone, anew each time, padded so that lengths tell little", async () => {
  const { envelope: offer, ends, vectors } = await vectorEnds();
  const subject = { purpose: "handover-answer", subjectId: offer.subjectId, sessionId: offer.sessionId, expiresAtMs: offer.expiresAtMs };
  const sealed = await sealEnvelope(ends, subject, { answer: "The first.", question: "Which one?", summary: "" });
  const again = await sealEnvelope(ends, subject, { answer: "The first.", question: "Which one?", summary: "" });
  expect(again.messageId).not.toBe(sealed.messageId);
  expect(fromBase64(sealed.ciphertext)).toHaveLength(256 + 16);
  // The host opens it as a device opens an offer: the ends swap, the header stays.
  const host: Ends = { ...ends, hostKey: ends.deviceKey.publicKey, deviceKey: await keyOf(vectors.hostSecret, vectors.hostKey) };
  const { CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } = await import("@hpke/core");
  const { Chacha20Poly1305 } = await import("@hpke/chacha20poly1305");
  const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Chacha20Poly1305() });
  const recipient = await suite.createRecipientContext({
    recipientKey: { privateKey: host.deviceKey.privateKey, publicKey: await suite.kem.deserializePublicKey(host.deviceKey.publicKey) },
    enc: fromBase64(sealed.enc),
    info: new TextEncoder().encode("sidestage/hpke/v1/handover-answer"),
    senderPublicKey: await suite.kem.deserializePublicKey(ends.deviceKey.publicKey),
  });
  await expect(recipient.open(fromBase64(sealed.ciphertext), new Uint8Array())).rejects.toThrow();
});

it("binds an answer to what was shown", async () => {
  const shown = { toolName: "Bash", inputJson: '{"command":"ls"}' };
  const digest = await digestOf(shown);
  expect(digest).toMatch(/^[0-9a-f]{64}$/);
  expect(await digestOf({ ...shown, inputJson: '{"command":"ls "}' })).not.toBe(digest);
  expect(toBase64(fromBase64("AAEC"))).toBe("AAEC");
});
