import { signal } from "@preact/signals";
import { ask, Refused } from "../api/ask.ts";
import { graphql } from "../api/graphql.ts";

/** What this login may see; what it may not is not shown, rather than refused. */
export interface Scopes {
  /** Texts: last words, transcripts, screens. */
  read: boolean;
  /** Devices, audit, changes of projects. */
  admin: boolean;
}

export const scopes = signal<Scopes>({ read: false, admin: false });

const Read = graphql(`query MayRead { outsideSessions(first: 1) { nodes { lastMessage { text } } } }`);
const Admin = graphql(`query MayAdmin { auditLog(first: 1) { nodes { id } } }`);

/** Finds out what the token allows; throws `Refused` if the server cannot be asked. */
export async function findScopes(): Promise<void> {
  const [read, admin] = await Promise.all([
    isAllowed(() => ask(Read, {})),
    isAllowed(() => ask(Admin, {})),
  ]);
  scopes.value = { read, admin };
}

async function isAllowed(question: () => Promise<unknown>): Promise<boolean> {
  try {
    await question();
    return true;
  } catch (error) {
    if (error instanceof Refused && error.code === "PERMISSION_DENIED") return false;
    throw error;
  }
}
