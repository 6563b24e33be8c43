import { graphql, type ResultOf } from "../api/graphql.ts";

/** An entry of a transcript. Kinds are open: an unknown one is shown by its body. */
export const Entry = graphql(`
  fragment Entry on TranscriptEntry {
    __typename id order at
    body { text truncated }
    ... on MessageEntry { model }
    ... on ToolCallEntry { toolCall { id name inputJson } }
    ... on ToolResultEntry { toolResult { callId isError denied } }
    ... on OpaqueEntry { recordType }
  }
`);
export type EntryRow = ResultOf<typeof Entry>;

export const TranscriptFeed = graphql(
  `
  subscription TranscriptFeed($sessionId: ID!, $after: FeedCursor) {
    transcriptFeed(sessionId: $sessionId, after: $after) {
      cursor kind more removedIds at
      upserts { ...Entry }
    }
  }
`,
  [Entry],
);

export const EarlierEntries = graphql(
  `
  query EarlierEntries($id: ID!, $before: String!) {
    node(id: $id) {
      ... on OutsideSession {
        transcript(last: 50, before: $before) {
          nodes { ...Entry }
          pageInfo { hasPreviousPage }
        }
      }
    }
  }
`,
  [Entry],
);

export const SessionLineage = graphql(`
  query SessionLineage($id: ID!) {
    node(id: $id) {
      ... on OutsideSession {
        agentVersion permissionMode currentDirectory
        continuedFrom { id name state }
        continuations(first: 10) { nodes { id name state } }
      }
    }
  }
`);

export const Resume = graphql(`
  mutation Resume($input: ResumeOutsideSessionInput!) {
    resumeOutsideSession(input: $input) {
      __typename
      ... on ResumeOutsideSessionPayload { terminal { id } }
      ... on OutsideSessionResumed { openTerminal { id } code message }
      ... on UserError { code message }
    }
  }
`);
