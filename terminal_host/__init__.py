"""Terminals: the host process that owns them and the gateway that serves them."""
