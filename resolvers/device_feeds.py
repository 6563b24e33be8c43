"""The feeds of paired devices and of pairings in the making."""

from collections.abc import AsyncGenerator

import strawberry

from resolvers.content import plain
from resolvers.context import Info, given
from resolvers.devices import Device, Pairing
from resolvers.feeds import After, FeedMessage, open_stream
from sidestage.devices import model
from sidestage.devices import pairings as pairing_model
from sidestage.feeds import FeedView


@strawberry.type(description="News of the devices.")
class DeviceFeedMessage(FeedMessage):
    """News of the devices."""

    upserts: list[Device] = plain("Rows to put or replace, by `id`.")


@strawberry.type(description="News of the pairings.")
class PairingFeedMessage(FeedMessage):
    """News of the pairings."""

    upserts: list[Pairing] = plain("Rows to put or replace, by `id`.")


async def follow_devices(
    info: Info, after: After = strawberry.UNSET
) -> AsyncGenerator[DeviceFeedMessage]:
    """Open the feed of the devices."""
    view = FeedView[model.Device](
        name="deviceFeed",
        feed=info.context.parts.devices.feed,
        key=lambda device: device.id,
        clock=info.context.parts.clock,
    )
    stream: AsyncGenerator[DeviceFeedMessage] = open_stream(
        info.context, view, "", given(after)
    )
    return stream


async def follow_pairings(
    info: Info, after: After = strawberry.UNSET
) -> AsyncGenerator[PairingFeedMessage]:
    """Open the feed of the pairings in the making."""
    view = FeedView[pairing_model.Pairing](
        name="pairingFeed",
        feed=info.context.parts.pairings.feed,
        key=lambda pairing: pairing.id,
        clock=info.context.parts.clock,
    )
    stream: AsyncGenerator[PairingFeedMessage] = open_stream(
        info.context, view, "", given(after)
    )
    return stream
