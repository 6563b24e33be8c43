import { print } from "@0no-co/graphql.web";
import type { TadaDocumentNode } from "gql.tada";

const printed = new WeakMap<object, string>();

/** Returns a document's text; each is printed once. */
export function printDocument(document: TadaDocumentNode<unknown, never>): string;
export function printDocument<D, V>(document: TadaDocumentNode<D, V>): string;
export function printDocument(document: object): string {
  let text = printed.get(document);
  if (text === undefined) {
    text = print(document as Parameters<typeof print>[0]);
    printed.set(document, text);
  }
  return text;
}
