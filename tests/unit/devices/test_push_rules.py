"""Where the server lets itself be sent to."""

import pytest

from sidestage.devices.push_rules import PushRules
from sidestage.errors import PushEndpointRefused

RULES = PushRules(("relay.example:8443", "*.push.example"))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "::1", "169.254.169.254", "10.1.2.3", "192.168.0.1", "0.0.0.0",
        "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fe80::1", "fc00::1", "224.0.0.1",
        "100.64.0.1", "2002:7f00:1::",
    ],
)  # fmt: skip
def test_no_private_address_is_called(address: str) -> None:
    target = RULES.parse_url("https://fcm.googleapis.com/x")
    assert RULES.check_addresses(target, ["8.8.8.8"]) == ("8.8.8.8",)
    with pytest.raises(PushEndpointRefused):
        RULES.check_addresses(target, ["8.8.8.8", address])


@pytest.mark.parametrize(
    "url",
    [
        "http://fcm.googleapis.com/x", "https://fcm.googleapis.com:8443/x",
        "https://evil.example/x", "https://fcm.googleapis.com@evil.example/",
        "https://fcm.googleapis.com.evil.example/", "https://127.0.0.1/",
        "https://relay.example/x", "https://push.example/", "ftp://fcm.googleapis.com/",
        "https://fcm.googleapis.com/#x", "https://fcm.googleapis.com\\@evil.example/",
        "https://fcm.googleapis.com:99999/", "https://[::1/",
    ],
)  # fmt: skip
def test_only_https_addresses_at_allowed_hosts_are_taken(url: str) -> None:
    with pytest.raises(PushEndpointRefused):
        RULES.parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://fcm.googleapis.com/x",
        "https://updates.push.services.mozilla.com/x",
        "https://relay.example:8443/x",
        "https://a.push.example/",
    ],
)
def test_allowed_hosts_are_taken(url: str) -> None:
    RULES.parse_url(url)
