"""To which addresses the server sends what devices ask it to.

A device names a URL and the server calls it: without these rules any device could make
the server speak to its own machine, the owner's network or a cloud's metadata service.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from sidestage.errors import PushEndpointRefused

PUSH_SERVICES: Final = (
    "fcm.googleapis.com",
    "*.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
)
"""What Chrome, Firefox, Safari and Edge subscribe to."""
URL_LIMIT_CHARACTERS: Final = 1024
"""The longest known, of WNS, have some 500."""
_HTTPS_PORT: Final = 443
_DEFAULT_PORTS: Final = {"https": _HTTPS_PORT, "http": 80}
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOW_32_BITS: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Target:
    """Where an endpoint's URL leads, taken apart."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The host as the `Host` header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_default = self.port == _DEFAULT_PORTS[self.scheme]
        return host if is_default else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: the audience of a VAPID token."""
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class PushRules:
    """*hosts* are `name`, `*.name` or either with `:port`; without one it is 443."""

    hosts: tuple[str, ...] = ()
    allow_loopback: bool = False

    def parse_url(self, url: str) -> Target:
        """Return where *url* leads; raises `PushEndpointRefused` if nothing may."""
        parts = _split(url)
        target = _target(parts)
        if target.scheme != "https" and not self.allow_loopback:
            raise PushEndpointRefused("A push endpoint must be an https address.")
        if not any(_fits(target, host) for host in (*PUSH_SERVICES, *self.hosts)):
            raise PushEndpointRefused(
                f"This server does not push to {target.host}: its owner can allow "
                "that in the setting push_hosts."
            )
        return target

    def check_addresses(
        self, target: Target, addresses: Iterable[str]
    ) -> tuple[str, ...]:
        """Return *addresses*, if each may be spoken to; else `PushEndpointRefused`.

        One private address among them is enough: it would be the next answer.
        """
        found = tuple(dict.fromkeys(addresses))
        if not found or not all(self._may_reach(target, each) for each in found):
            raise PushEndpointRefused("A push endpoint must have a public address.")
        return found

    def _may_reach(self, target: Target, text: str) -> bool:
        address = unmapped(text)
        if self.allow_loopback and address.is_loopback:
            return True
        # Without TLS to this machine only.
        return target.scheme == "https" and is_public(text)


def unmapped(text: str) -> IPv4Address | IPv6Address:
    """Return the address; an IPv4 one inside IPv6 as what packets go to."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & _LOW_32_BITS)
    return address


def is_public(text: str) -> bool:
    """Tell whether the address belongs to the internet at large."""
    address = unmapped(text)
    if address.is_multicast or not address.is_global:
        return False
    if isinstance(address, IPv6Address):
        # Tunnels into IPv4 that no push service is behind, and the old site-local.
        is_tunnel = address.sixtofour is not None or address.teredo is not None
        return not (is_tunnel or address.is_site_local)
    return True


def _split(url: str) -> SplitResult:
    if len(url) > URL_LIMIT_CHARACTERS:
        raise PushEndpointRefused("The address of a push endpoint is too long.")
    # Readers of URLs differ in what they do with such characters.
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        raise PushEndpointRefused("A push endpoint's address has odd characters.")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise PushEndpointRefused("A push endpoint must be an https address.") from None
    if "@" in parts.netloc or parts.fragment:
        raise PushEndpointRefused("A push endpoint has no user and no fragment.")
    return parts


def _target(parts: SplitResult) -> Target:
    host = parts.hostname
    if parts.scheme not in _DEFAULT_PORTS or not host or host.endswith("."):
        raise PushEndpointRefused("A push endpoint must be an https address.")
    port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    return Target(parts.scheme, host, port)


def _fits(target: Target, allowed: str) -> bool:
    name, colon, port = allowed.rpartition(":")
    if not colon or not port.isdecimal() or name.endswith(":"):
        name, port = allowed, str(_HTTPS_PORT)
    if str(target.port) != port:
        return False
    name = name.lower().strip("[]")
    if name.startswith("*."):
        return target.host.endswith(name[1:])
    return target.host == name
