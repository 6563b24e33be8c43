"""Agent CLIs: one module each, saying where it keeps sessions and how to read them."""
