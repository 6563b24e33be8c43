import { graphql, type ResultOf } from "../api/graphql.ts";

export const TerminalLabels = graphql(`
  fragment TerminalLabels on Terminal {
    id name title state directory startedAt endedAt exitStatus endReason lastOutputAt readOnly
    project { id name }
    session { id name state }
  }
`);

export const TerminalsFeed = graphql(
  `
  subscription TerminalsFeed($after: FeedCursor) {
    terminalFeed(after: $after) { cursor kind more removedIds at upserts { ...TerminalLabels } }
  }
`,
  [TerminalLabels],
);

export type TerminalRow = ResultOf<typeof TerminalLabels>;
