"""Chooses the screen engine: libghostty where it loads, else pyte."""

import logging
from collections.abc import Callable
from typing import Final

from terminal_host.host.fallback.engine import PyteEngine
from terminal_host.screen import Engine

_log = logging.getLogger(__name__)


def _choose() -> Callable[[int, int, int], Engine]:
    try:
        from terminal_host.host.ghostty.engine import GhosttyEngine
    except (ImportError, OSError) as error:
        # No wheel for this processor, or another C library (musl).
        _log.warning("libghostty cannot be loaded, pyte stands in: %s", error)
        return PyteEngine
    return GhosttyEngine


_ENGINE: Final = _choose()
ENGINE_NAME: Final = "pyte" if _ENGINE is PyteEngine else "ghostty"
"""What `doctor` and `server.health` say."""


def new_engine(cols: int, rows: int, scrollback: int) -> Engine:
    """Return a fresh screen of that size, of the best engine there is."""
    return _ENGINE(cols, rows, scrollback)
