const starting = new Set<string>();

/** Notes that this client started a terminal, which is thus to have its size. */
export function markStarted(terminalId: string): void {
  starting.add(terminalId);
}

/** Tells, once, whether this client started the terminal. */
export function takeStarted(terminalId: string): boolean {
  return starting.delete(terminalId);
}
