"""Devices on a real database: everything of a server but its sockets."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sidestage.audit import AuditRecord
from sidestage.devices.credentials import DeviceCredentials
from sidestage.devices.host_keys import HostKeys
from sidestage.devices.keeper import TokenKeeper
from sidestage.devices.key_change import KeyChange
from sidestage.devices.model import (
    ADMIN_SCOPES,
    ANONYMOUS,
    ContentMode,
    Device,
    Principal,
    PrincipalKind,
)
from sidestage.devices.pairing import PairingService
from sidestage.devices.registry import DeviceRegistry
from sidestage.devices.sealing_desk import SealingDesk
from sidestage.devices.service import DeviceService
from sidestage.storage.database import Database
from sidestage.storage.device_store import ForgetDevice, SqlDeviceStore
from sidestage.storage.seen_envelopes import SqlSeenEnvelopes
from sidestage.storage.stores import SqlAuditLog, SqlTokenStore
from tests.fakes.envelopes import HOST_ID
from tests.fakes.phone import Phone

OWNER = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "local:1")


@dataclass
class Clock:
    now: datetime = field(default=datetime(2026, 11, 30, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Spent:
    """A rate limit that never refuses and counts."""

    points: float = 0

    def spend(self, caller: str, points: float) -> None:
        self.points += points


@dataclass
class Server:
    """The parts of one run of a server; `restart` makes those of the next."""

    folder: Path
    clock: Clock
    database: Database
    audit: SqlAuditLog
    keeper: TokenKeeper
    registry: DeviceRegistry
    keys: HostKeys
    desk: DeviceService
    pairings: PairingService
    change: KeyChange
    rate: Spent
    forget: tuple[ForgetDevice, ...]

    @classmethod
    async def start(cls, folder: Path, clock: Clock, *forget: ForgetDevice) -> "Server":
        database = await Database.open(folder / "sidestage.db")
        audit = SqlAuditLog(database, clock=clock)
        keeper = TokenKeeper(SqlTokenStore(database, clock=clock), audit, clock=clock)
        await keeper.load()
        store = SqlDeviceStore(database, forget=forget, clock=clock)
        registry = DeviceRegistry(store, clock=clock)
        await registry.load()
        keys = HostKeys(folder / "host-key", HOST_ID, clock=clock)
        await keys.load()
        seen, rate = SqlSeenEnvelopes(database), Spent()
        seals = SealingDesk(keys, registry, seen, audit, clock=clock)
        credentials = DeviceCredentials(registry, keeper, keys, seals, clock=clock)
        keeper.tell_devices(credentials)
        desk = DeviceService(registry, keeper, keys, credentials, seen, clock=clock)
        pairings = PairingService(
            registry,
            keeper,
            keys,
            seals,
            credentials,
            audit,
            rate=rate,
            rate_of_address=Spent(),
            clock=clock,
        )
        change = KeyChange(keys, registry, desk, pairings, audit, clock)
        await change.announce()
        return cls(
            folder,
            clock,
            database,
            audit,
            keeper,
            registry,
            keys,
            desk,
            pairings,
            change,
            rate,
            forget,
        )

    async def stop(self) -> None:
        self.pairings.close()
        await self.keeper.close()
        await self.database.close()

    async def restart(self) -> "Server":
        await self.stop()
        return await Server.start(self.folder, self.clock, *self.forget)

    async def open_pairing(self, **options: Any) -> Phone:
        values: dict[str, Any] = {
            "base_url": "https://box.example",
            "name": None,
            "scopes": None,
            "content": ContentMode.CLEAR,
            "actor": OWNER,
        }
        _, link = await self.pairings.create(**values | options)
        return Phone(link)

    async def ask(self, phone: Phone, **changes: Any) -> dict[str, Any]:
        """Send the phone's request; return what it opens of the answer."""
        claimed = await self.pairings.claim(phone.request(**changes), actor=ANONYMOUS)
        return phone.open(claimed.envelope)

    async def confirm(self, phone: Phone, code: str) -> Device:
        return await self.pairings.confirm(phone.link.pairing_id, code, actor=OWNER)

    async def pair(self, **options: Any) -> tuple[Phone, Device, str]:
        """Pair a phone whole; return it, its device and its token, used once."""
        phone = await self.open_pairing(**options)
        shown = await self.ask(phone)
        await self.confirm(phone, shown["code"])
        token = (await self.ask(phone))["token"]
        principal = await self.call(token)
        assert principal.device_id is not None
        return phone, self.registry.get(principal.device_id), token

    async def call(self, token: str) -> Principal:
        return await self.keeper.authenticate(token, address="::1")

    async def records(self, action: str) -> list[AuditRecord]:
        entries = await self.audit.list_entries(limit=200)
        return [each.record for each in entries if each.record.action == action]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = await Server.start(tmp_path, Clock())
    yield server
    await server.stop()
