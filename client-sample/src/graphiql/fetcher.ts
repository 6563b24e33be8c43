import { createGraphiQLFetcher, type Fetcher } from "@graphiql/toolkit";
import { createClient } from "graphql-ws";
import { serverUrl, socketUrl } from "../ui/base.ts";

/** Returns what runs operations with *token*: HTTP, and a WebSocket for subscriptions. */
export function makeFetcher(token: string): Fetcher {
  return createGraphiQLFetcher({
    url: serverUrl("graphql"),
    headers: { authorization: `Bearer ${token}` },
    wsClient: createClient({ url: socketUrl("graphql"), connectionParams: { token } }),
  });
}
