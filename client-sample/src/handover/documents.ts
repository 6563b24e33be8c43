import { graphql, type ResultOf } from "../api/graphql.ts";

export const OffersFeed = graphql(`
  subscription OffersFeed($after: FeedCursor) {
    handoverOfferFeed(after: $after) {
      cursor kind more removedIds at
      upserts {
        id state stateSince delivery createdAt expiresAt blockedBy
        session { id }
        terminal { id }
        continuation { id }
        lastFailure { code message }
        envelope {
          purpose hostId hostKeyId deviceId deviceKeyId subjectId sessionId messageId
          sealedAtMs expiresAtMs enc ciphertext
        }
      }
    }
  }
`);

export const AnswerHandover = graphql(`
  mutation AnswerHandover($input: AnswerHandoverInput!) {
    answerHandover(input: $input) {
      __typename
      ... on AnswerHandoverPayload { offer { id } }
      ... on UserError { code message }
    }
  }
`);

export const DismissHandover = graphql(`
  mutation DismissHandover($input: DismissHandoverInput!) {
    dismissHandover(input: $input) {
      __typename
      ... on DismissHandoverPayload { offer { id } }
      ... on UserError { code message }
    }
  }
`);

export const TakeOver = graphql(`
  mutation TakeOver($input: TakeOverSessionInput!) {
    takeOverSession(input: $input) {
      __typename
      ... on TakeOverSessionPayload { terminal { id } handedOff }
      ... on OutsideSessionResumed { openTerminal { id } code message }
      ... on UserError { code message }
    }
  }
`);

export type OfferRow = ResultOf<typeof OffersFeed>["handoverOfferFeed"]["upserts"][number];
