import { graphql } from "../api/graphql.ts";

export const Ticket = graphql(`
  mutation Ticket($input: IssueTerminalTicketInput!) {
    issueTerminalTicket(input: $input) {
      __typename
      ... on IssueTerminalTicketPayload { ticket { secret socketPath mode } }
      ... on UserError { code message }
    }
  }
`);

export const CloseTerminal = graphql(`
  mutation CloseTerminal($input: CloseTerminalInput!) {
    closeTerminal(input: $input) {
      __typename
      ... on CloseTerminalPayload { terminal { id } }
      ... on UserError { code message }
    }
  }
`);

export const TerminalInfo = graphql(`
  query TerminalInfo($id: ID!) {
    node(id: $id) {
      ... on Terminal {
        id name title directory readOnly endReason
        sandbox { enabled }
        session { id name }
      }
    }
  }
`);
