/** The frames of the companion WebSocket (docs/terminal-protocol.md). */

export const SUBPROTOCOL = "sidestage.terminal.v1";
/** The server takes 256 KiB a frame; a long paste is sent in pieces of this size. */
export const INPUT_PIECE_BYTES = 64 * 1024;
/** Acknowledge after so many processed bytes: the server waits at 1 MiB. */
export const ACK_BYTES = 128 * 1024;
export const SIZE_LIMIT = 500;
const OFFSET_BYTES = 8;

/** What the server may say. Types and fields it adds later are ignored. */
export type ServerMessage =
  | { type: "attached"; mode: string; state: string; cols: number; rows: number; offset: number; owner: boolean }
  | { type: "gap"; start: number; end: number }
  | { type: "repaint"; offset: number; length: number; cols: number; rows: number }
  | { type: "resized"; cols: number; rows: number; owner: boolean }
  | { type: "exit"; status?: number; offset: number }
  | { type: "error"; code: string; message: string }
  | { type: "ping" }
  | { type: "pong" };

export type ClientMessage =
  | { type: "attach"; ticket: string; after?: number; cols?: number; rows?: number }
  | { type: "resize" | "claim"; cols: number; rows: number }
  | { type: "ack"; offset: number }
  | { type: "ping" }
  | { type: "pong" };

/** A piece of output and the offset of its first byte. */
export interface Output {
  offset: number;
  bytes: Uint8Array;
}

/** Takes a binary frame of the server apart; throws `RangeError` if it is too short. */
export function parseOutput(frame: ArrayBuffer): Output {
  // Offsets stay below 2^53, so the number is exact.
  const offset = Number(new DataView(frame).getBigUint64(0));
  return { offset, bytes: new Uint8Array(frame, OFFSET_BYTES) };
}

/** Cuts input into the pieces that go out as frames. */
export function* inputPieces(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += INPUT_PIECE_BYTES) {
    yield bytes.subarray(at, at + INPUT_PIECE_BYTES);
  }
}
