"""Every limit of the API, with its reason. A test or a benchmark may pass others."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one operation, one connection and one caller may ask for."""

    body_bytes: int = 1024 * 1024
    """A request or message; the largest honest one is a document of some 20 kB."""
    anonymous_body_bytes: int = 4 * 1024
    """Of a request without a token: `pairDevice` with its document has some 1.5 kB."""
    tokens: int = 2000
    """Tokens of a document: GraphiQL's introspection has about 350."""
    depth: int = 12
    """Levels of fields; the deepest honest query has 8."""
    introspection_depth: int = 20
    """GraphiQL asks for types wrapped nine deep."""
    aliases: int = 30
    """Fields under another name; a dashboard of ten tiles has ten."""
    like_named_pairs: int = 5_000
    """Pairs of fields that answer under one name: validation compares each with each.
    Thirty tiles of ten fields make 4,350; 5,000 take a fifth of a second."""
    cost: int = 20_000
    """Fields times page sizes: 100 sessions with 40 fields each are 4,000."""
    points_burst: float = 200_000
    """Cost a caller may spend at once: a herd of reconnecting tabs, each a snapshot."""
    points_per_second: float = 20_000
    """Cost a caller may spend for long: two thirds of what a core can serve."""
    new_document_points: float = 5_000
    """For working out a document that nobody sent before: some 50 ms at the worst."""
    anonymous_burst: float = 20
    """Operations without a token from one address at once."""
    anonymous_per_second: float = 2
    subscriptions: int = 20
    """On one connection: one app's screens; graphql-ws multiplexes them."""
    operations: int = 100
    """Queries, mutations and subscriptions in flight on one connection."""
    connections: int = 2000
    """Sockets and streams in all: 1,000 dashboards, and room to reconnect."""
    connections_per_address: int = 1500
    """Below `connections`, so that one address cannot keep the others out."""
    uninitialised: int = 1000
    """Sockets that have not shown a token yet: a herd comes back at once after a
    restart. A stranger who holds that many costs 30 MB, and keeps nobody out."""
    init_seconds: float = 10
    """From the upgrade to `connection_init` and its token."""
    ping_seconds: float = 20
    """Between two pings of ours; below the shortest proxy's idle time-out (30 s)."""
    silence_seconds: float = 50
    """No frame at all for so long means a dead peer: two pings went unanswered, and
    with `close_seconds` it is gone within the minute that apps are promised."""
    send_seconds: float = 20
    """A reader that takes nothing for so long has stopped reading."""
    close_seconds: float = 1
    """What a close frame may take before the connection is abandoned."""
    heartbeat_seconds: float = 20
    """Between two messages of a feed."""
    coalesce_seconds: float = 0.01
    """Changes that come within it are told together; below what an eye sees."""
    history_entries: int = 256
    """Messages a group keeps for members that are a little behind."""
    history_bytes: int = 4 * 1024 * 1024
    """And how much they may weigh; who is further behind gets them merged."""
    groups: int = 500
    """Different subscriptions at once, each with a task of its own."""
    execution_seconds: float = 90
    """A query or mutation: a start may wait 60 s for its host."""


DEFAULT_LIMITS = Limits()
