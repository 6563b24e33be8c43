import { signal } from "@preact/signals";
import { ask } from "../api/ask.ts";
import { graphql } from "../api/graphql.ts";

/** What this login may do; what it may not is not shown, rather than refused. */
export interface Scopes {
  /** Texts: last words, transcripts, screens. */
  read: boolean;
  /** Start, resume, type, close. */
  terminal: boolean;
  /** Answer what agents ask: a paired device's key, and its leave. */
  answer: boolean;
  /** Devices, audit, changes of projects. */
  admin: boolean;
}

const NONE: Scopes = { read: false, terminal: false, answer: false, admin: false };

export const scopes = signal<Scopes>(NONE);

/** Whether the server speaks the version of the schema that this client was written for. */
export const serverSchema = signal<string | null>(null);

const Me = graphql(`query Me { viewer { scopes device { id } } server { schemaVersion } }`);

/** Asks what the token allows; throws `Refused` if the server cannot be asked. */
export async function findScopes(): Promise<void> {
  const { viewer, server } = await ask(Me, {});
  const has = (scope: string) => (viewer.scopes as readonly string[]).includes(scope);
  scopes.value = {
    read: has("READ"),
    terminal: has("TERMINAL"),
    answer: has("ANSWER") && viewer.device !== null,
    admin: has("ADMIN"),
  };
  serverSchema.value = server.schemaVersion;
}
