// graphql-ws on the package ws, as its manual starts it.
import { createServer } from "node:http";
import { load, rows, sessionFeed, tellPort, typeDefs } from "./schema.mjs";

const { buildSchema } = load("graphql");
const { useServer } = load("graphql-ws/use/ws");
const { WebSocketServer } = load("ws");

const server = createServer();
const wsServer = new WebSocketServer({ server, path: "/graphql" });
const roots = {
  query: { hello: "hello", sessions: rows },
  subscription: { sessionFeed: async function* () {
    for await (const sessionFeed_ of sessionFeed()) yield { sessionFeed: sessionFeed_ };
  } },
};
useServer({ schema: buildSchema(typeDefs), roots }, wsServer);
tellPort(server);
