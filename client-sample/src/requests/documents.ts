import { graphql, type ResultOf } from "../api/graphql.ts";

export const RequestLabels = graphql(`
  fragment RequestLabels on AgentRequest {
    id sessionId kind state stateSince createdAt expiresAt expiresAtMs settledBy verdict
  }
`);

export const RequestsFeed = graphql(
  `
  subscription RequestsFeed($after: FeedCursor) {
    requestFeed(after: $after) {
      cursor kind more removedIds at
      upserts {
        ...RequestLabels
        content {
          toolName inputJson digest plan
          questions { text header multiSelect options { label description } }
          suggestions { json destination needsAdmin isForbidden }
        }
      }
    }
  }
`,
  [RequestLabels],
);

export const AnswerRequest = graphql(`
  mutation AnswerRequest($input: AnswerRequestInput!) {
    answerRequest(input: $input) {
      __typename
      ... on AnswerRequestPayload { request { id state } }
      ... on UserError { code message }
    }
  }
`);

export type RequestRow = ResultOf<typeof RequestsFeed>["requestFeed"]["upserts"][number];
export type RequestContent = NonNullable<RequestRow["content"]>;
export type Question = RequestContent["questions"][number];
