// The schema both Node peers serve: the flat fields of our rows, under our names.
// Times are ready strings, which spares the peers their formatting.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// Where the runner has installed the packages: they are no part of this checkout.
const require = createRequire(`${process.env.PEERS}/`);
export const load = (name) => require(name);

export const rows = JSON.parse(readFileSync(process.env.ROWS, "utf8"));

export const typeDefs = `
  enum AgentKind { CLAUDE_CODE CODEX UNKNOWN }
  enum SessionState { RUNNING ASKING IDLE ENDED UNKNOWN }
  enum FeedKind { SNAPSHOT DELTA HEARTBEAT RESET }
  type Session {
    id: ID! agent: AgentKind! name: String! directory: String currentDirectory: String
    state: SessionState! stateSince: String! startedAt: String lastActivityAt: String
    gitBranch: String model: String permissionMode: String
  }
  type Message {
    cursor: String! kind: FeedKind! upserts: [Session!]! removedIds: [ID!]!
  }
  type Query { hello: String! sessions: [Session!]! }
  type Subscription { sessionFeed: Message! }
`;

const listeners = new Set();
let seq = 0;

const message = (kind, upserts) => ({
  cursor: `c${seq}`, kind, upserts, removedIds: [],
});

// One change: another row gets a name that tells when it was published.
function publish() {
  const at = seq++ % rows.length;
  const now = performance.timeOrigin + performance.now();
  rows[at] = { ...rows[at], name: `t${now.toFixed(3)}` };
  const told = message("DELTA", [rows[at]]);
  for (const tell of listeners) tell(told);
}

// A snapshot, then every change; what a slow subscriber has not read yet waits in line.
export async function* sessionFeed() {
  const line = [];
  let wake = () => {};
  const tell = (told) => { line.push(told); wake(); };
  listeners.add(tell);
  try {
    yield message("SNAPSHOT", rows);
    for (;;) {
      while (line.length) yield line.shift();
      await new Promise((resolve) => { wake = resolve; });
    }
  } finally {
    listeners.delete(tell);
  }
}

// The runner says on stdin how many changes a second to publish. One a turn of the loop:
// a server that is late catches up as it can.
let timer;
function publishAt(due, pause) {
  timer = setTimeout(() => {
    publish();
    publishAt(due + pause, pause);
  }, Math.max(0, due - performance.now()));
}
createInterface({ input: process.stdin }).on("line", (line) => {
  clearTimeout(timer);
  const perSecond = Number(line);
  if (perSecond) publishAt(performance.now(), 1000 / perSecond);
}).on("close", () => process.exit(0));

export function tellPort(server) {
  server.listen(0, "127.0.0.1", 2048, () => console.log(server.address().port));
}
