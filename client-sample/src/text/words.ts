/**
 * The words for the schema's enums. They are open: a server may send a value that this
 * client does not know, and it is then shown as what the schema says, "unknown".
 */

/** Returns what *table* has of its own for *value*. */
function known<Word>(table: Record<string, Word>, value: string): Word | undefined {
  return Object.hasOwn(table, value) ? table[value] : undefined;
}

/** What a state looks like and is called. */
export interface StateWords {
  label: string;
  tone: "needs" | "works" | "rests" | "ended" | "unknown";
}

const STATES: Record<string, StateWords> = {
  RUNNING: { label: "Working", tone: "works" },
  ASKING: { label: "Needs you", tone: "needs" },
  IDLE: { label: "Idle", tone: "rests" },
  ENDED: { label: "Ended", tone: "ended" },
};
const UNKNOWN_STATE: StateWords = { label: "Unknown", tone: "unknown" };

export function stateWords(state: string): StateWords {
  return known(STATES, state) ?? UNKNOWN_STATE;
}

const AGENTS: Record<string, string> = { CLAUDE_CODE: "Claude Code", CODEX: "Codex" };

export function agentName(agent: string): string {
  return known(AGENTS, agent) ?? "Agent";
}

const WAITS: Record<string, string> = {
  PERMISSION: "asks for permission",
  QUESTION: "asks a question",
  PLAN: "wants its plan approved",
  DIALOG: "shows a dialog",
};

/** Returns what a session waits for, as the end of "The agent …". */
export function waitingWords(kind: string, toolName: string | null): string {
  const words = known(WAITS, kind) ?? "waits for you";
  return kind === "PERMISSION" && toolName ? `wants to use ${toolName}` : words;
}

const EVIDENCE: Record<string, string> = {
  HOOK: "the agent's hook",
  PROCESS: "the process table",
  REGISTRY: "the agent's register",
  TERMINAL: "its terminal",
  TRANSCRIPT: "its transcript",
};

export function evidenceWords(source: string): string {
  return known(EVIDENCE, source) ?? "a source this page does not know";
}

/** Returns the last part of a folder, which is what people call it. */
export function folderName(path: string | null | undefined): string {
  return path?.replace(/\/+$/, "").split("/").at(-1) || path || "";
}

/** Returns a model's name without its vendor's prefix and date. */
export function modelName(model: string | null | undefined): string {
  return (model ?? "").replace(/^claude-/, "").replace(/-\d{8}$/, "");
}
