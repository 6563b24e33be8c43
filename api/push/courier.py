"""Sends push messages, to no address but those that were checked.

The name of an endpoint is looked up, every address it has is checked, and the
connection goes to a checked address: a name that changes its mind in between reaches
nothing. TLS still proves the name.
"""

import asyncio
import hashlib
import hmac
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import httpx
from cryptography.hazmat.primitives.asymmetric import ec

from api.push.vapid import VapidKey
from sidestage.devices.push import Delivery, PushEndpoint, PushMessage, PushWord
from sidestage.devices.push_rules import PushRules, Target
from sidestage.envelopes.encoding import encode_base64url
from sidestage.errors import InvalidInput, PushEndpointRefused

TIMEOUT_SECONDS: Final = 5.0
"""For one attempt, from the look-up to the status."""
TTL_SECONDS: Final = 600
"""How long a push service keeps what it cannot deliver: later it is old news."""
ADDRESSES_LIMIT: Final = 2
"""Tried in one attempt: one of each family, where a family is broken."""
TIMESTAMP_HEADER: Final = "Sidestage-Timestamp"
SIGNATURE_HEADER: Final = "Sidestage-Signature"
_GONE: Final = frozenset({404, 410})
_LATER: Final = frozenset({408, 425, 429})

Resolve: TypeAlias = Callable[[str, int], Awaitable[tuple[str, ...]]]


async def resolve_name(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of *host*, the best first; raises `OSError` without one."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(str(entry[4][0]) for entry in found)


class WebCourier:
    """`sidestage.devices.push.Courier`. Close it at the end."""

    def __init__(
        self, rules: PushRules, key: VapidKey, *, resolve: Resolve = resolve_name
    ) -> None:
        self._rules = rules
        self._key = key
        self._resolve = resolve
        self._client: httpx.AsyncClient | None = None

    async def check(self, endpoint: PushEndpoint) -> None:
        """Raise `PushEndpointRefused` or `InvalidInput` if it can never be reached."""
        target = self._rules.parse_url(endpoint.url)
        if endpoint.keys is not None:
            _check_point(endpoint.keys.p256dh)
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self._addresses(target)
        except OSError:  # a look-up that takes too long is one too
            raise PushEndpointRefused(
                f"{target.host} cannot be found from this server."
            ) from None

    async def deliver(self, endpoint: PushEndpoint, message: PushMessage) -> Delivery:
        """Send *message* once; never raises for what the other side does."""
        try:
            target = self._rules.parse_url(endpoint.url)
            body = await asyncio.to_thread(_seal, endpoint, message.body())
            headers = await self._headers(endpoint, target, message, body)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                addresses = await self._addresses(target)
                status = await self._post(
                    endpoint.url, target, addresses, headers, body
                )
        except PushEndpointRefused:
            return Delivery.REFUSED
        except (OSError, httpx.HTTPError):  # TimeoutError is an OSError
            return Delivery.LATER
        return _outcome(status)

    async def close(self) -> None:
        """Close what is open."""
        if self._client is not None:
            await self._client.aclose()

    async def _addresses(self, target: Target) -> tuple[str, ...]:
        found = await self._resolve(target.host, target.port)
        return self._rules.check_addresses(target, found)

    async def _headers(
        self, endpoint: PushEndpoint, target: Target, message: PushMessage, body: bytes
    ) -> dict[str, str]:
        is_urgent = message.word is not PushWord.SETTLED
        headers = {
            "Host": target.authority,
            "TTL": str(TTL_SECONDS),
            "Topic": message.topic,
            "Urgency": "high" if is_urgent else "normal",
        }
        if endpoint.secret is not None:
            signed = _sign(endpoint.secret, int(time.time()), body)
            return headers | signed | {"Content-Type": "application/json"}
        return headers | {
            "Authorization": await self._key.sign_for(target.origin),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
        }

    async def _post(
        self,
        url: str,
        target: Target,
        addresses: tuple[str, ...],
        headers: dict[str, str],
        body: bytes,
    ) -> int:
        client = await self._open()
        for number, address in enumerate(addresses[:ADDRESSES_LIMIT], 1):
            request = client.build_request(
                "POST",
                httpx.URL(url).copy_with(host=address),
                headers=headers,
                content=body,
                # The certificate is the name's, though the address is called.
                extensions={"sni_hostname": target.host},
            )
            try:
                answer = await client.send(request, stream=True)
            except httpx.ConnectError:
                if number == len(addresses[:ADDRESSES_LIMIT]):
                    raise
                continue
            await answer.aclose()  # its body is nobody's business
            return answer.status_code
        raise httpx.ConnectError("no address")

    async def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            # Loading the certificates takes a moment.
            self._client = await asyncio.to_thread(_make_client)
        return self._client


def _make_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        # A proxy of the environment would look the name up itself.
        trust_env=False,
        follow_redirects=False,
        timeout=TIMEOUT_SECONDS,
        # A connection kept for its address would serve another name there.
        limits=httpx.Limits(max_keepalive_connections=0),
    )


def _seal(endpoint: PushEndpoint, plain: bytes) -> bytes:
    """Return what is sent: encrypted for Web Push, as it is for a webhook."""
    if endpoint.keys is None:
        return plain
    # Here, in a thread: it loads two HTTP clients that we do not use, in 0.3 s.
    from pywebpush import WebPusher

    subscription = {
        "endpoint": endpoint.url,
        "keys": {
            "p256dh": encode_base64url(endpoint.keys.p256dh),
            "auth": encode_base64url(endpoint.keys.auth),
        },
    }
    sealed: bytes = WebPusher(subscription).encode(plain, "aes128gcm")["body"]
    return sealed


def _sign(secret: bytes, now: int, body: bytes) -> dict[str, str]:
    digest = hmac.new(secret, b"%d.%b" % (now, body), hashlib.sha256).hexdigest()
    return {TIMESTAMP_HEADER: str(now), SIGNATURE_HEADER: f"v1={digest}"}


def _check_point(p256dh: bytes) -> None:
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), p256dh)
    except ValueError:
        raise InvalidInput("p256dh is not a point of P-256.") from None


def _outcome(status: int) -> Delivery:
    if 200 <= status < 300:
        return Delivery.DELIVERED
    if status in _GONE:
        return Delivery.GONE
    return Delivery.LATER if status in _LATER or status >= 500 else Delivery.REFUSED
