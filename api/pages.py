"""The page a browser gets while the web client is not built."""

from typing import Final

NOT_BUILT: Final = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sidestage</title>
<h1>Sidestage</h1>
<p>The server runs, but its web client is not built. In the checkout, run
<code>scripts/build-client</code> and start the server again; a package that was
installed brings the client along.</p>
<p>The API works without it, at <code>graphql</code> below this address: send POST
requests with <code>Content-Type: application/json</code> and
<code>Authorization: Bearer &lt;token&gt;</code>, or open a WebSocket with the
subprotocol <code>graphql-transport-ws</code>. The schema describes itself.</p>
</html>
"""
