// A device in JavaScript, written after docs/handover-protocol.md with @hpke/core and
// WebCrypto. Reads one JSON request a line, writes one JSON answer a line:
//   {op: "open", secret, hostKey, envelope}     -> {text}
//   {op: "seal", secret, hostKey, header, text} -> {envelope}
//   {op: "prove", secret, claim}                -> {key, proof}
//   {op: "keyId", key}                          -> {keyId}
// or {error: name} if it refuses. Secrets and keys are hex.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(join(process.argv[2], "packages.js"));
const { CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } = require("@hpke/core");
const { Chacha20Poly1305 } = require("@hpke/chacha20poly1305");
const { subtle } = globalThis.crypto;

const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Chacha20Poly1305(),
});

const utf8 = (text) => new TextEncoder().encode(text);
const fromHex = (text) => new Uint8Array(Buffer.from(text, "hex"));
const fromBase64 = (text) => new Uint8Array(Buffer.from(text, "base64"));
const toBase64 = (bytes) => Buffer.from(bytes).toString("base64");

function u32(number) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

function pae(parts) {
  const chunks = [u32(parts.length)];
  for (const part of parts) {
    const bytes = typeof part === "string" ? utf8(part) : part;
    chunks.push(u32(bytes.length), bytes);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function aadOf(header) {
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

// As a browser keeps it: in no way can a script read it out again.
async function importPrivate(secret) {
  const head = fromHex("302e020100300506032b656e04220420");
  const pkcs8 = new Uint8Array([...head, ...fromHex(secret)]);
  return subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, false, ["deriveBits"]);
}

async function importPair(secret) {
  const head = fromHex("302e020100300506032b656e04220420");
  const pkcs8 = new Uint8Array([...head, ...fromHex(secret)]);
  const readable = await subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, true, [
    "deriveBits",
  ]);
  const { x } = await subtle.exportKey("jwk", readable);
  const publicKey = await suite.kem.deserializePublicKey(
    new Uint8Array(Buffer.from(x, "base64url")),
  );
  return { privateKey: await importPrivate(secret), publicKey };
}

function padded(text) {
  const bytes = utf8(text);
  const whole = new Uint8Array(Math.ceil(bytes.length / 256) * 256).fill(0x20);
  whole.set(bytes);
  return whole;
}

const operations = {
  async open({ secret, hostKey, envelope }) {
    const recipient = await suite.createRecipientContext({
      recipientKey: await importPair(secret),
      enc: fromBase64(envelope.enc),
      info: utf8(`sidestage/hpke/v1/${envelope.purpose}`),
      senderPublicKey: await suite.kem.deserializePublicKey(fromHex(hostKey)),
    });
    const aad = aadOf(envelope);
    const opened = await recipient.open(fromBase64(envelope.ciphertext), aad);
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(opened) };
  },

  async seal({ secret, hostKey, header, text }) {
    const sender = await suite.createSenderContext({
      recipientPublicKey: await suite.kem.deserializePublicKey(fromHex(hostKey)),
      info: utf8(`sidestage/hpke/v1/${header.purpose}`),
      senderKey: await importPair(secret),
    });
    const ciphertext = toBase64(await sender.seal(padded(text), aadOf(header)));
    return { envelope: { ...header, enc: toBase64(sender.enc), ciphertext } };
  },

  async prove({ secret, claim }) {
    const material = await subtle.importKey("raw", fromHex(secret), "HKDF", false, [
      "deriveBits",
    ]);
    const parameters = {
      name: "HKDF",
      hash: "SHA-256",
      salt: new Uint8Array(),
      info: utf8("sidestage/pair/v1"),
    };
    const key = new Uint8Array(await subtle.deriveBits(parameters, material, 256));
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const signing = await subtle.importKey("raw", key, hmac, false, ["sign"]);
    const transcript = pae([
      "sidestage/pair/v1",
      claim.pairingId,
      claim.hostId,
      fromHex(claim.hostKey),
      fromHex(claim.deviceKey),
      claim.name,
      claim.platform,
      fromHex(claim.nonce),
    ]);
    const proof = await subtle.sign("HMAC", signing, transcript);
    const hex = (bytes) => Buffer.from(bytes).toString("hex");
    return { key: hex(key), proof: hex(proof) };
  },

  async keyId({ key }) {
    const named = new Uint8Array([...utf8("sidestage/key/v1"), ...fromHex(key)]);
    const digest = await subtle.digest("SHA-256", named);
    return { keyId: Buffer.from(digest).subarray(0, 12).toString("base64url") };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await operations[request.op](request);
  } catch (error) {
    answer = { error: error.constructor.name };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
