import { ACK_BYTES, type Output, type ServerMessage } from "./protocol.ts";

/** What an emulator does for us. */
export interface Emulator {
  /** Takes bytes in, after all that came before; *done* when they were processed. */
  write: (bytes: Uint8Array, done: () => void) => void;
  /** Forgets everything, takes the size, then takes the bytes in, in one stroke. */
  repaint: (bytes: Uint8Array, cols: number, rows: number) => void;
  resize: (cols: number, rows: number) => void;
}

interface Repaint {
  offset: number;
  length: number;
  cols: number;
  rows: number;
  pieces: Uint8Array[];
  got: number;
}

/**
 * Keeps the place in a terminal's output over reconnections: what came, what is to be
 * acknowledged, and the repaint that is on its way. It knows no socket.
 */
export class OutputTracker {
  /** Behind the last byte the emulator was given; undefined while there is no whole screen. */
  offset: number | undefined;
  #repaint: Repaint | null = null;
  #acked = 0;
  #unprocessed = 0;

  constructor(
    private readonly emulator: Emulator,
    private readonly acknowledge: (offset: number) => void,
  ) {}

  /** A new connection: a repaint that was cut is asked for again from its beginning. */
  reconnect(): void {
    if (this.#repaint) this.offset = undefined;
    this.#repaint = null;
  }

  attached(offset: number): void {
    this.offset ??= offset;
    this.#acked = offset;
  }

  startRepaint(message: Extract<ServerMessage, { type: "repaint" }>): void {
    const { offset, length, cols, rows } = message;
    this.#repaint = { offset, length, cols, rows, pieces: [], got: 0 };
    if (length === 0) this.#finishRepaint(this.#repaint);
  }

  take({ offset, bytes }: Output): void {
    if (this.#repaint) {
      this.#repaint.pieces.push(bytes);
      this.#repaint.got += bytes.length;
      if (this.#repaint.got >= this.#repaint.length) this.#finishRepaint(this.#repaint);
      return;
    }
    const end = offset + bytes.length;
    this.offset = end;
    this.#unprocessed += 1;
    this.emulator.write(bytes, () => {
      this.#unprocessed -= 1;
      // Often enough to keep the output flowing, and when the emulator has caught up.
      if (this.#unprocessed > 0 && end - this.#acked < ACK_BYTES) return;
      this.#acked = end;
      this.acknowledge(end);
    });
  }

  #finishRepaint(repaint: Repaint): void {
    const whole = new Uint8Array(repaint.got);
    let at = 0;
    for (const piece of repaint.pieces) {
      whole.set(piece, at);
      at += piece.length;
    }
    this.#repaint = null;
    this.offset = repaint.offset;
    // Only when all of it is there: half a screen would be a flash.
    this.emulator.repaint(whole, repaint.cols, repaint.rows);
  }
}
