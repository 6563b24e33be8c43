/** The tabs GraphiQL opens with: each runs as it is. */
export const EXAMPLES = [
  {
    query: `# The sessions of this machine, the latest first. Press Play.
query ListSessions {
  outsideSessions(first: 20, orderBy: LAST_ACTIVITY) {
    nodes {
      id
      name
      state
      stateSince
      directory
      project { name }
      resume { available refusal { code message } }
    }
    pageInfo { endCursor hasNextPage }
  }
}
`,
  },
  {
    query: `# The same list, live: first a SNAPSHOT, then a DELTA for each change.
# Keep the newest cursor and give it back as \`after\` to go on where you were.
subscription FollowSessions($after: FeedCursor) {
  outsideSessionFeed(filter: { activeWithinSeconds: 86400 }, after: $after) {
    kind
    cursor
    more
    removedIds
    upserts { id name state lastActivityAt }
  }
}
`,
  },
  {
    query: `# What a conversation says. Put a session's id into the variables below.
query ReadTranscript($id: ID!) {
  node(id: $id) {
    ... on OutsideSession {
      name
      transcript(last: 10) {
        nodes {
          __typename
          at
          body { text truncated }
          ... on ToolCallEntry { toolCall { name inputJson } }
        }
        pageInfo { startCursor hasPreviousPage }
      }
    }
  }
}
`,
    variables: `{ "id": "" }`,
  },
  {
    query: `# Goes on with an ended session, in a sandboxed terminal. Each answer is a union:
# select ... on UserError once, and errors that come later are still shown.
mutation ResumeSession($input: ResumeOutsideSessionInput!) {
  resumeOutsideSession(input: $input) {
    __typename
    ... on ResumeOutsideSessionPayload { terminal { id } ticket { socketPath expiresAt } }
    ... on UserError { code message }
  }
}
`,
    variables: `{ "input": { "sessionId": "", "cols": 100, "rows": 30 } }`,
  },
  {
    query: `# The server: what it is, and how well.
query ThisServer {
  server {
    version
    schemaVersion
    capabilities
    urls
    host { name }
    health { status notes counters { name value } }
  }
}
`,
  },
];
