// Runs graphql-http's audits of "GraphQL over HTTP" against a server, and prints each
// one's outcome as JSON. Arguments: the folder of node_modules, the address, the token.
import { createRequire } from "node:module";

const [modules, url, token] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { serverAudits } = require("graphql-http");

const authorized = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${token}`);
  return fetch(input, { ...init, headers });
};
const outcomes = [];
for (const audit of serverAudits({ url, fetchFn: authorized })) {
  const result = await audit.fn();
  outcomes.push({ id: audit.id, name: audit.name, status: result.status, reason: result.reason });
}
console.log(JSON.stringify(outcomes));
