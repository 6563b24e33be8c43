"""The page a browser gets at `/graphql`, until it is replaced by GraphiQL's."""

from typing import Final

LANDING: Final = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sidestage</title>
<h1>Sidestage</h1>
<p>This is the address of a GraphQL API. Send POST requests with
<code>Content-Type: application/json</code> and
<code>Authorization: Bearer &lt;token&gt;</code>, or open a WebSocket with the
subprotocol <code>graphql-transport-ws</code>. The schema describes itself.</p>
</html>
"""
LANDING_HEADERS: Final = (("content-type", "text/html; charset=utf-8"),)
