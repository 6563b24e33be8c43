"""The ASGI application: the only place that wires parts together."""
