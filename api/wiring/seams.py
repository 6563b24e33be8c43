"""Where tests put a fault between the parts."""

from collections.abc import Callable
from dataclasses import dataclass

from sidestage.handover.store import OfferStore
from sidestage.sessions.hooks import HookListener
from sidestage.terminals.model import TerminalHost
from sidestage.terminals.store import TerminalStore
from sidestage.terminals.typist import Typist


def _same_offers(store: OfferStore) -> OfferStore:
    return store


def _same_typist(typist: Typist) -> Typist:
    return typist


def _same_host(host: TerminalHost) -> TerminalHost:
    return host


def _same_store(store: TerminalStore) -> TerminalStore:
    return store


@dataclass(frozen=True, slots=True)
class Seams:
    """Where tests put a fault between the parts; the defaults pass everything on."""

    wrap_host: Callable[[TerminalHost], TerminalHost] = _same_host
    wrap_store: Callable[[TerminalStore], TerminalStore] = _same_store
    wrap_offers: Callable[[OfferStore], OfferStore] = _same_offers
    wrap_typist: Callable[[Typist], Typist] = _same_typist
    hook_listeners: tuple[HookListener, ...] = ()
    """Told of hook events instead of the parts, which would let go what waits."""
