"""Handing a conversation over: what asks a person, and what comes of the answer."""
