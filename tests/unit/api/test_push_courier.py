"""What is sent to an endpoint, read by a client of `http_ece` as a browser would."""

import hashlib
import hmac
from datetime import UTC, datetime
from pathlib import Path

import http_ece
import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from api.push import courier as module
from api.push.courier import WebCourier
from api.push.vapid import VapidKey
from sidestage.devices.push import (
    Delivery,
    PushEndpoint,
    PushMessage,
    PushWord,
    WebPushKeys,
)
from sidestage.devices.push_rules import PushRules
from sidestage.ids import DeviceId

MESSAGE = PushMessage(PushWord.WAITING, 2, "topic")


def endpoint(keys: WebPushKeys | None) -> PushEndpoint:
    return PushEndpoint(
        id="push:1",
        device_id=DeviceId("device:1"),
        url="https://fcm.googleapis.com/secret-path",
        created_at=datetime(2026, 12, 1, tzinfo=UTC),
        keys=keys,
        secret=b"s" * 16 if keys is None else None,
    )


def make_courier(
    folder: Path, status: int, sent: list[httpx.Request], *addresses: str
) -> WebCourier:
    async def resolve(_host: str, _port: int) -> tuple[str, ...]:
        return addresses or ("8.8.8.8",)

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(status, headers={"location": "https://127.0.0.1/"})

    key = VapidKey(folder / "vapid-key", contact="mailto:a@example.org")
    courier = WebCourier(PushRules(), key, resolve=resolve)
    courier._client = httpx.AsyncClient(
        transport=httpx.MockTransport(handle), trust_env=False
    )
    return courier


async def test_a_browser_reads_the_count_and_nothing_else(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    sent: list[httpx.Request] = []
    courier = make_courier(tmp_path, 201, sent)
    told = endpoint(WebPushKeys(p256dh=point, auth=b"a" * 16))
    await courier.check(told)
    assert await courier.deliver(told, MESSAGE) is Delivery.DELIVERED
    plain = http_ece.decrypt(sent[0].content, private_key=key, auth_secret=b"a" * 16)
    assert plain == b'{"t":"waiting","n":2}'
    assert sent[0].url.host == "8.8.8.8"
    assert sent[0].headers["host"] == "fcm.googleapis.com"
    assert sent[0].extensions["sni_hostname"] == "fcm.googleapis.com"
    assert sent[0].headers["ttl"] == "600"
    assert sent[0].headers["authorization"].startswith("vapid t=")
    assert (tmp_path / "vapid-key").stat().st_mode & 0o777 == 0o600
    await courier.close()


async def test_a_webhook_is_signed_over_its_time_and_body(tmp_path: Path) -> None:
    sent: list[httpx.Request] = []
    courier = make_courier(tmp_path, 200, sent)
    assert await courier.deliver(endpoint(None), MESSAGE) is Delivery.DELIVERED
    time = sent[0].headers[module.TIMESTAMP_HEADER].encode()
    signed = time + b"." + sent[0].content
    digest = hmac.new(b"s" * 16, signed, hashlib.sha256).hexdigest()
    assert sent[0].headers[module.SIGNATURE_HEADER] == f"v1={digest}"
    await courier.close()


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    sent: list[httpx.Request] = []
    courier = make_courier(tmp_path, 307, sent)
    assert await courier.deliver(endpoint(None), MESSAGE) is Delivery.REFUSED
    assert len(sent) == 1
    await courier.close()


async def test_a_name_that_turned_private_is_not_called(tmp_path: Path) -> None:
    sent: list[httpx.Request] = []
    courier = make_courier(tmp_path, 200, sent, "127.0.0.1")
    assert await courier.deliver(endpoint(None), MESSAGE) is Delivery.REFUSED
    assert sent == []
    await courier.close()


async def test_a_gone_endpoint_is_told_from_a_busy_one(tmp_path: Path) -> None:
    for status, outcome in ((410, Delivery.GONE), (503, Delivery.LATER)):
        courier = make_courier(tmp_path, status, [])
        assert await courier.deliver(endpoint(None), MESSAGE) is outcome
        await courier.close()
