// Runs one subscription with the reference clients, graphql-ws and graphql-sse: a
// snapshot, then one change that the test makes when this prints "ready". Prints what
// each client got as JSON. Arguments: node_modules, base address, token, subscription.
import { createRequire } from "node:module";

const [modules, base, token, query] = process.argv.slice(2);
const require = createRequire(modules + "/");
const ws = require("graphql-ws");
const sse = require("graphql-sse");

const overWebSocket = ws.createClient({
  url: base.replace("http", "ws") + "/graphql",
  webSocketImpl: require("ws"),
  connectionParams: { token },
  retryAttempts: 0,
});
const overEvents = sse.createClient({
  url: base + "/graphql",
  headers: { authorization: `Bearer ${token}` },
  retryAttempts: 0,
});
const take = async (client, onFirst) => {
  const got = [];
  for await (const result of client.iterate({ query })) {
    if (got.push(result) === 1) onFirst();
    if (got.length === 2) break;
  }
  return got;
};
let waiting = 2;
const onFirst = () => --waiting || console.log("ready");
const [socket, events] = await Promise.all([
  take(overWebSocket, onFirst),
  take(overEvents, onFirst),
]);
console.log(JSON.stringify({ socket, events }));
process.exit(0);
