from dataclasses import replace
from pathlib import Path

import pytest

from api.server import check_bind, is_loopback
from sidestage.errors import SettingsInvalid
from sidestage.settings import Settings, read_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings(environment={"HOME": str(tmp_path), "PATH": "/usr/bin"})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_nothing(settings: Settings, host: str) -> None:
    assert is_loopback(host)
    check_bind(replace(settings, host=host))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.evil.example"]
)
def test_any_other_address_needs_tls_or_a_word(settings: Settings, host: str) -> None:
    beyond = replace(settings, host=host)
    with pytest.raises(SettingsInvalid, match="tokens would travel in clear"):
        check_bind(beyond)
    with pytest.raises(SettingsInvalid):
        check_bind(replace(beyond, public_urls=("http://example.org",)))
    check_bind(replace(beyond, public_urls=("https://example.org/s",)))
    check_bind(replace(beyond, insecure_bind=True))
