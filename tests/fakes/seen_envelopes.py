"""`SeenEnvelopes` in memory."""

from dataclasses import replace

from sidestage.envelopes.replay import SeenEnvelope
from sidestage.ids import DeviceId


class FakeSeenEnvelopes:
    """Keeps rows in a dictionary; nothing in it awaits, so each step is atomic."""

    def __init__(self) -> None:
        self.rows: dict[tuple[DeviceId, str], SeenEnvelope] = {}

    async def find(self, device_id: DeviceId, message_id: str) -> SeenEnvelope | None:
        return self.rows.get((device_id, message_id))

    async def add(self, seen: SeenEnvelope) -> SeenEnvelope:
        return self.rows.setdefault((seen.device_id, seen.message_id), seen)

    async def settle(self, device_id: DeviceId, message_id: str, outcome: str) -> None:
        known = self.rows.get((device_id, message_id))
        if known is not None and known.outcome is None:
            self.rows[device_id, message_id] = replace(known, outcome=outcome)

    async def forget_before(self, now_ms: int) -> None:
        self.rows = {
            key: row for key, row in self.rows.items() if row.keep_until_ms > now_ms
        }
