"""How fast a caller may spend: a token bucket for each, priced by operation."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sidestage.errors import RateLimited

BUCKETS_LIMIT: Final = 10_000
"""Callers remembered; the one that was away for longest is forgotten, thus full."""


@dataclass(slots=True)
class _Bucket:
    points: float
    at: float


class RateLimiter:
    """Token buckets by caller; *monotonic* gives seconds."""

    def __init__(
        self, burst: float, per_second: float, monotonic: Callable[[], float]
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._monotonic = monotonic
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def spend(self, caller: str, points: float) -> None:
        """Take *points* from the caller's bucket.

        Raises `RateLimited` when they are not there, with the time until they are.
        """
        now = self._monotonic()
        bucket = self._buckets.get(caller) or _Bucket(self._burst, now)
        self._buckets[caller] = bucket
        self._buckets.move_to_end(caller)
        if len(self._buckets) > BUCKETS_LIMIT:
            self._buckets.popitem(last=False)
        grown = bucket.points + (now - bucket.at) * self._per_second
        bucket.points, bucket.at = min(self._burst, grown), now
        # What costs more than a whole bucket passes when the bucket is full.
        wanted = min(points, self._burst)
        if bucket.points < wanted:
            wait = (wanted - bucket.points) / self._per_second
            raise RateLimited(
                "Too much at once. Try again a little later.",
                retry_after_ms=max(1, round(wait * 1000)),
            )
        bucket.points -= wanted
