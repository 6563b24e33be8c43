"""GraphQL: one module a noun; it translates and decides nothing."""
