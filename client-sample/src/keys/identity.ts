import { signal } from "@preact/signals";
import type { Bytes } from "./bytes.ts";
import type { DeviceKey } from "./deviceKey.ts";
import type { Ends } from "./envelope.ts";

/** What a paired browser keeps: its key, its token, and the host's key it pinned. */
export interface Identity {
  deviceId: string;
  deviceKey: DeviceKey;
  token: string;
  hostId: string;
  hostKey: Bytes;
}

/** A pairing that was begun: kept so that a reload asks again with the same bytes. */
export interface PendingPairing {
  pairingId: string;
  hostId: string;
  hostKey: Bytes;
  deviceKey: DeviceKey;
  request: PairRequest;
}

export interface PairRequest {
  pairingId: string;
  deviceKey: string;
  name: string;
  platform: string;
  nonce: string;
  proof: string;
}

interface Kept {
  identity: Identity;
  pairing: PendingPairing;
}

const DATABASE = "sidestage";
const STORE = "keys";

/** The paired browser's identity, once it is read; null if it is not paired. */
export const identity = signal<Identity | null>(null);

/** Reads the identity, where the browser has a place for it. */
export async function loadIdentity(): Promise<void> {
  if (!isSecureContext || !window.indexedDB) return;
  identity.value = (await keep().read("identity")) ?? null;
}

export async function keepIdentity(value: Identity): Promise<void> {
  await keep().write("identity", value);
  await keep().remove("pairing");
  identity.value = value;
}

export async function forgetIdentity(): Promise<void> {
  identity.value = null;
  await keep().remove("identity");
}

/** Returns both ends as envelopes need them; null for a browser that is not paired. */
export function ends(): Ends | null {
  const known = identity.value;
  if (!known) return null;
  const { hostId, hostKey, deviceId, deviceKey } = known;
  return { hostId, hostKey, deviceId, deviceKey };
}

/** Gives access to what is kept. A key stays a `CryptoKey` in there, never bytes. */
export function keep() {
  return {
    read: <Name extends keyof Kept>(name: Name) =>
      inStore<Kept[Name] | undefined>("readonly", (store) => store.get(name)),
    write: <Name extends keyof Kept>(name: Name, value: Kept[Name]) =>
      inStore("readwrite", (store) => store.put(value, name)),
    remove: (name: keyof Kept) => inStore("readwrite", (store) => store.delete(name)),
  };
}

async function inStore<Result>(
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest<Result>,
): Promise<Result> {
  const database = await openDatabase();
  try {
    const transaction = database.transaction(STORE, mode);
    const request = work(transaction.objectStore(STORE));
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    return request.result;
  } finally {
    database.close();
  }
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
