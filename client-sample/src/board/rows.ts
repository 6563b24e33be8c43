import { graphql, type ResultOf } from "../api/graphql.ts";

/** What a token with `VIEW` may see of a session: the row's shape everywhere. */
export const SessionLabels = graphql(`
  fragment SessionLabels on OutsideSession {
    id agent name directory state stateSince
    stateEvidence { source observedAt }
    waitingFor { kind label toolName since }
    startedAt lastActivityAt endedAt gitBranch model handedOffAt
    usage { inputTokens outputTokens cacheReadTokens cacheCreationTokens }
    project { id name }
    terminal { id state }
    conflict { since message }
    resume { available refusal { code message } }
  }
`);

export const BoardFeed = graphql(
  `
  subscription BoardFeed($after: FeedCursor) {
    outsideSessionFeed(after: $after) {
      cursor kind more removedIds at
      upserts { ...SessionLabels lastMessage { role text at } }
    }
  }
`,
  [SessionLabels],
);

/** The same without texts, for logins without `READ`. */
export const LabelsFeed = graphql(
  `
  subscription LabelsFeed($after: FeedCursor) {
    outsideSessionFeed(after: $after) {
      cursor kind more removedIds at
      upserts { ...SessionLabels }
    }
  }
`,
  [SessionLabels],
);

export type SessionRow = ResultOf<typeof SessionLabels> & {
  lastMessage?: { role: string; text: string | null; at: string | null } | null;
};
