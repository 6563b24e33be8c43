"""The `sidestage` command: one module a subcommand."""
