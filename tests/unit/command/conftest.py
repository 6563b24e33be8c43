"""A stand-in for the server's answers to the command line."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from sidestage.command import client

Json = dict[str, Any]


@pytest.fixture
def asked() -> list[Json]:
    """The bodies of the requests, in their order."""
    return []


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, asked: list[Json]) -> dict[str, Json]:
    """Answers by the beginning of the operation; the transport is httpx's own."""
    given: dict[str, Json] = {}

    def handle(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        asked.append(body)
        text = body.get("query", request.url.path)
        for beginning, answer in given.items():
            if beginning in text:
                return httpx.Response(answer.get("status", 200), json=answer)
        return httpx.Response(404, json={"message": "nothing prepared"})

    def transport(**_: object) -> httpx.MockTransport:
        return httpx.MockTransport(handle)

    monkeypatch.setattr(httpx, "HTTPTransport", transport)
    monkeypatch.setattr(client, "_check_listening", lambda settings: None)
    return given


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIDESTAGE_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path
