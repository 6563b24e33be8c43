"""Outside sessions: what they are, how their state is known, the current list."""
