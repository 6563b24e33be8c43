"""Which devices have a connection open, told by the tokens of the connections."""

from collections.abc import Callable, Iterable

from sidestage.ids import DeviceId


def _nobody() -> Iterable[str]:
    return ()


class ConnectedDevices:
    """`sidestage.devices.model.Presence`. The connections come later than it does."""

    def __init__(self, device_of: Callable[[str], DeviceId | None]) -> None:
        self._device_of = device_of
        self._tokens: Callable[[], Iterable[str]] = _nobody

    def follow(self, tokens: Callable[[], Iterable[str]]) -> None:
        """Learn of the connections from *tokens*, which lists those in use."""
        self._tokens = tokens

    def connected_devices(self) -> frozenset[DeviceId]:
        """Return the devices with an open socket or stream (no I/O)."""
        devices = (self._device_of(token_id) for token_id in self._tokens())
        return frozenset(device for device in devices if device is not None)
