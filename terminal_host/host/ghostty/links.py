"""Bounds the links of one terminal.

The library keeps rows in pages of some 40,000 cells. If a row is moved into a page that
holds more than about 1,500 different links or 22,000 linked cells, the library ends the
process (measured; its `increaseCapacity`), and every terminal of the host with it.
"""

from typing import Final

from terminal_host.host.ghostty.cells import read_grid
from terminal_host.host.ghostty.library import Vt

LINKS_LIMIT: Final = 500
CELLS_LIMIT: Final = 8000
"""Both of one buffer, so that even what is hidden beside it keeps below the cliff."""
REFUSED_OPENINGS: Final = 500
"""After a recount that found too many: counting anew at each link would be slow."""

_ALL_LINES: Final = 1 << 16


class LinkBudget:
    """Counts links and linked cells from above; looks at the cells when in doubt."""

    def __init__(self, vt: Vt) -> None:
        self._vt = vt
        self._uris: set[bytes] = set()
        self._others = 0
        self._cells = 0
        self._refused = 0

    def open(self, uri: bytes) -> bool:
        """Take note of a link that opens; False if the library must not see it."""
        if self._refused:
            self._refused -= 1
            return False
        self._uris.add(uri)
        return self._fits() or self._recount(0)

    def print(self, count: int) -> bool:
        """Take note of at most *count* linked cells; False if they are too many."""
        self._cells += count
        return self._fits() or self._recount(count)

    def _fits(self) -> bool:
        links = len(self._uris) + self._others
        return links <= LINKS_LIMIT and self._cells <= CELLS_LIMIT

    def _recount(self, coming: int) -> bool:
        """Count what is there; *coming* cells are still to be added."""
        rows = read_grid(self._vt, _ALL_LINES).rows
        linked = [run for row in rows for run in row.runs if run.link is not None]
        self._uris.clear()
        self._others = len({run.link for run in linked}) + 1  # the open one
        self._cells = sum(run.width for run in linked) + coming
        if not self._fits():
            self._refused = REFUSED_OPENINGS
            self._cells -= coming
        return not self._refused
