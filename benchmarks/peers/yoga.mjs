// GraphQL Yoga on Node's own HTTP server, as its manual starts it.
import { createServer } from "node:http";
import { load, rows, tellPort, typeDefs } from "./schema.mjs";

const { createSchema, createYoga } = load("graphql-yoga");
const schema = createSchema({
  typeDefs,
  resolvers: { Query: { hello: () => "hello", sessions: () => rows } },
});
tellPort(createServer(createYoga({ schema, logging: false, graphiql: false })));
