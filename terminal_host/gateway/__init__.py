"""The companion WebSocket and the client of the host, inside `serve`."""
