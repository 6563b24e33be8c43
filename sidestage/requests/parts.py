"""What the requests stand on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sidestage.devices.model import Devices, Presence
from sidestage.devices.push import Push
from sidestage.projects.adoption import Adoption
from sidestage.requests.store import RequestStore
from sidestage.sessions.board import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerParts:
    """The ports that decide whether a hook is held, and where requests are kept."""

    sessions: Sessions
    adoption: Adoption
    devices: Devices
    presence: Presence
    push: Push
    store: RequestStore
    holds_headless: bool
    """Whether runs without a dialog (`-p`, the SDK) are held too."""
    clock: Callable[[], datetime]

    def reaches_anyone(self) -> bool:
        """Tell whether somebody who may answer is connected, or can be told."""
        answering = {device.id for device in self.devices.list_answering()}
        connected = self.presence.connected_devices()
        return bool(answering & connected) or self.push.reaches_anyone()
