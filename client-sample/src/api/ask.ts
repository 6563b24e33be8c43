import type { TadaDocumentNode } from "gql.tada";
import { token, tokenRefused } from "../login/token.ts";
import { serverUrl } from "../ui/base.ts";
import { CLIENT } from "../version.ts";
import { printDocument } from "./print.ts";

/** An operation that was refused or never arrived; the message is for the person. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

interface Answer<Data> {
  data?: Data | null;
  errors?: { message: string; extensions?: { code?: string } }[];
}

/**
 * Runs a query or a mutation; throws `Refused`. *anonymous* shows no token, also where
 * the tab has one.
 */
export async function ask<Data, Variables>(
  document: TadaDocumentNode<Data, Variables>,
  variables: Variables,
  { anonymous = false } = {},
): Promise<Data> {
  const shown = anonymous ? null : token.peek();
  const answer = await send<Data>({ query: printDocument(document), variables }, shown);
  const error = answer.errors?.[0];
  if (error) {
    const code = error.extensions?.code ?? "UNKNOWN";
    if (code === "UNAUTHENTICATED") {
      tokenRefused();
    }
    throw new Refused(code, error.message);
  }
  if (!answer.data) throw new Refused("UNKNOWN", "The server's answer is empty.");
  return answer.data;
}

async function send<Data>(body: unknown, shown: string | null): Promise<Answer<Data>> {
  let response: Response;
  try {
    response = await fetch(serverUrl("graphql"), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/graphql-response+json",
        "sidestage-client": CLIENT,
        ...(shown ? { authorization: `Bearer ${shown}` } : {}),
      },
      body: JSON.stringify(body),
    });
    return (await response.json()) as Answer<Data>;
  } catch {
    throw new Refused("OFFLINE", "The server does not answer. Nothing was changed.");
  }
}

/** What every mutation answers: its payload, or a typed error with a sentence. */
export interface UnionMember {
  __typename: string;
}

/** Returns the payload of a mutation's union; throws `Refused` for any other member. */
export function payload<Member extends UnionMember, Name extends Member["__typename"]>(
  member: Member,
  name: Name,
): Extract<Member, { __typename: Name }> {
  if (member.__typename === name) return member as Extract<Member, { __typename: Name }>;
  const error = member as { code?: string; message?: string };
  // A member that came after this client was built still has its sentence.
  throw new Refused(
    error.code ?? "UNKNOWN",
    error.message ?? "The server's answer is of a newer version. Reload this page.",
  );
}
