import { initGraphQLTada } from "gql.tada";
import type { introspection } from "../graphql-env.d.ts";

export type { FragmentOf, ResultOf, VariablesOf } from "gql.tada";
export { readFragment } from "gql.tada";

/**
 * Makes typed documents out of text. `npm run typecheck` holds every document against
 * schema.graphql, so one that does not fit is an error of the build.
 */
export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: { DateTime: string; BigInt: string; Base64: string; FeedCursor: string };
}>();
