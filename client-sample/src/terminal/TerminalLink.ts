import { signal } from "@preact/signals";
import { ask, payload, Refused } from "../api/ask.ts";
import { socketUrl } from "../ui/base.ts";
import { Ticket } from "./documents.ts";
import { type Emulator, OutputTracker } from "./OutputTracker.ts";
import { type ClientMessage, inputPieces, parseOutput, type ServerMessage, SUBPROTOCOL } from "./protocol.ts";

/** What a person may know of a terminal's connection. */
export interface TerminalView {
  phase: "connecting" | "attached" | "waiting" | "ended" | "lost" | "gone" | "refused";
  /** Whether this client may type. */
  canType: boolean;
  /** Whether this client decides the size. */
  isOwner: boolean;
  /** Its program's exit status, once it has ended and is known. */
  exitStatus: number | null;
  /** Why it was refused, in a sentence. */
  message: string | null;
}

export interface Size {
  cols: number;
  rows: number;
}

const PING_MS = 20_000;
const SILENCE_LIMIT_MS = 50_000;
const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 10_000;
const CLOSE = { ended: 1000, unauthenticated: 4401, notFound: 4404, readOnly: 4409 };

/** One terminal's connection, kept up until it is stopped or the terminal is gone. */
export class TerminalLink {
  readonly view = signal<TerminalView>({
    phase: "connecting",
    canType: false,
    isOwner: false,
    exitStatus: null,
    message: null,
  });
  readonly #output: OutputTracker;
  #mode: "CONTROL" | "VIEW";
  #socket: WebSocket | null = null;
  #size: Size | null = null;
  #claims: boolean;
  #failures = 0;
  #heardAt = 0;
  #timer = 0;
  #pinger = 0;
  #isStopped = false;

  constructor(
    private readonly terminalId: string,
    private readonly emulator: Emulator,
    options: { mode: "CONTROL" | "VIEW"; claims: boolean },
  ) {
    this.#mode = options.mode;
    this.#claims = options.claims;
    this.#output = new OutputTracker(emulator, (offset) => this.#send({ type: "ack", offset }));
  }

  start(): void {
    this.#pinger = setInterval(() => this.#watch(), PING_MS);
    void this.#connect();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#pinger);
    this.#socket?.close(CLOSE.ended);
  }

  /** Tries again at once if it waits to. */
  retryNow(): void {
    if (this.view.peek().phase !== "waiting") return;
    clearTimeout(this.#timer);
    void this.#connect();
  }

  /** Sends input; false if nobody would get it. */
  type(bytes: Uint8Array<ArrayBuffer>): boolean {
    if (!this.view.peek().canType || this.#socket?.readyState !== WebSocket.OPEN) return false;
    for (const piece of inputPieces(bytes)) this.#socket.send(piece);
    return true;
  }

  /** Tells the client's own size; the terminal follows if this client owns it. */
  setSize(size: Size): void {
    if (this.#size?.cols === size.cols && this.#size.rows === size.rows) return;
    this.#size = size;
    if (this.view.peek().phase === "attached") this.#send({ type: "resize", ...size });
  }

  /** Makes the terminal as large as this client's window. */
  claim(): void {
    if (this.#size) this.#send({ type: "claim", ...this.#size });
  }

  /** Looks on from now on, or takes part again. */
  setMode(mode: "CONTROL" | "VIEW"): void {
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.#show({ canType: false, isOwner: false });
    this.#socket?.close(CLOSE.ended);
  }

  async #connect(): Promise<void> {
    if (this.view.peek().phase !== "waiting") this.#show({ phase: "connecting" });
    try {
      const input = { terminalId: this.terminalId, mode: this.#mode };
      const { issueTerminalTicket } = await ask(Ticket, { input });
      const { ticket } = payload(issueTerminalTicket, "IssueTerminalTicketPayload");
      if (!this.#isStopped) this.#open(ticket.socketPath, ticket.secret);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#refused(error);
    }
  }

  #refused(error: Refused): void {
    if (this.#isStopped) return;
    if (error.code === "TERMINAL_NOT_FOUND") this.#show({ phase: "gone" });
    else if (error.code === "PERMISSION_DENIED" && this.#mode === "CONTROL") {
      this.#mode = "VIEW";
      void this.#connect();
    } else if (error.code === "PERMISSION_DENIED") this.#show({ phase: "refused", message: error.message });
    else this.#retryLater();
  }

  #open(path: string, ticket: string): void {
    const socket = new WebSocket(socketUrl(path.replace(/^\//, "")), SUBPROTOCOL);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#heardAt = Date.now();
    this.#output.reconnect();
    socket.onopen = () => {
      const after = this.#output.offset;
      this.#send({ type: "attach", ticket, ...(after === undefined ? {} : { after }), ...this.#size });
    };
    socket.onmessage = ({ data }) => {
      this.#heardAt = Date.now();
      if (typeof data === "string") this.#hear(JSON.parse(data) as ServerMessage);
      else this.#output.take(parseOutput(data as ArrayBuffer));
    };
    socket.onclose = ({ code }) => {
      if (this.#socket === socket) this.#closed(code);
    };
  }

  #hear(message: ServerMessage): void {
    switch (message.type) {
      case "attached":
        this.#attached(message);
        break;
      case "repaint":
        this.#output.startRepaint(message);
        break;
      case "resized":
        this.emulator.resize(message.cols, message.rows);
        this.#show({ isOwner: message.owner });
        break;
      case "exit":
        this.#show({ phase: "ended", canType: false, exitStatus: message.status ?? null });
        break;
      case "ping":
        this.#send({ type: "pong" });
        break;
      default:
        // `gap` is followed by a repaint, `error` by a close, and each says it all.
        break;
    }
  }

  #attached(message: Extract<ServerMessage, { type: "attached" }>): void {
    this.#failures = 0;
    this.#output.attached(message.offset);
    this.emulator.resize(message.cols, message.rows);
    const isRunning = message.state === "RUNNING";
    this.#show({
      phase: isRunning ? "attached" : message.state === "LOST" ? "lost" : "ended",
      canType: isRunning && message.mode === "CONTROL",
      isOwner: message.owner,
    });
    // Once: after a reconnection the size may be another's by right.
    if (this.#claims && isRunning && message.mode === "CONTROL") this.claim();
    this.#claims = false;
  }

  #closed(code: number): void {
    this.#socket = null;
    if (this.#isStopped) return;
    const { phase } = this.view.peek();
    if (phase === "ended") return;
    if (code === CLOSE.notFound) this.#show({ phase: "gone", canType: false });
    else {
      if (code === CLOSE.readOnly) this.#mode = "VIEW";
      this.#retryLater();
    }
  }

  #retryLater(): void {
    this.#show({ phase: "waiting", canType: false });
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.#failures, LONGEST_WAIT_MS);
    this.#failures += 1;
    this.#timer = setTimeout(() => void this.#connect(), wait * (0.6 + Math.random() * 0.4));
  }

  #watch(): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (Date.now() - this.#heardAt > SILENCE_LIMIT_MS) this.#socket.close();
    else this.#send({ type: "ping" });
  }

  #send(message: ClientMessage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #show(change: Partial<TerminalView>): void {
    this.view.value = { ...this.view.peek(), ...change };
  }
}
