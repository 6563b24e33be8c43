"""Who shows a good token: tokens in memory, failures limited, uses written down."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from sidestage.audit import AuditLog, AuditOutcome, AuditRecord
from sidestage.devices.login_failures import LoginFailures
from sidestage.devices.model import (
    ADMIN_SCOPES,
    ContentMode,
    Principal,
    PrincipalKind,
    Scope,
)
from sidestage.devices.secret_file import read_secret, write_secret
from sidestage.devices.tokens import StoredToken, mint_token, parse_token
from sidestage.errors import (
    InvalidInput,
    StorageUnavailable,
    Unauthenticated,
)
from sidestage.ids import DeviceId
from sidestage.text import clean_text

DEVICE_IDLE: Final = timedelta(days=90)
"""A device that did not call for so long has to be paired again."""
USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""At most one write a minute says when a token was last used."""
TOKENS_LIMIT: Final = 200
TOKEN_NAME_LIMIT_CHARACTERS: Final = 64

_log = logging.getLogger(__name__)


class TokenStore(Protocol):
    """Where tokens are written down, each change with its audit record."""

    async def load(self) -> tuple[StoredToken, ...]:
        """Return every token, oldest first."""

    async def add(self, token: StoredToken, record: AuditRecord) -> None:
        """Insert *token*."""

    async def replace(
        self, old_ids: tuple[str, ...], new: StoredToken, record: AuditRecord
    ) -> None:
        """Delete the old tokens and insert the new one, as one."""

    async def remove(self, token_id: str, record: AuditRecord) -> None:
        """Delete the token."""

    async def mark_used(self, token_id: str, at: datetime) -> None:
        """Note when the token was last used."""


class DeviceCalls(Protocol):
    """Who is told that a device shows its token."""

    def content_of(self, device_id: DeviceId) -> ContentMode:
        """Return how much clear text the device is shown."""

    async def called(self, token: StoredToken) -> None:
        """See to what its token's first use changes, before the call goes on."""

    async def seen(self, device_id: DeviceId, at: datetime) -> None:
        """Note when the device last called; once a minute at most."""


class TokenKeeper:
    """`sidestage.devices.model.Authenticator`, and the life of tokens."""

    def __init__(
        self, store: TokenStore, audit: AuditLog, *, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._tokens: dict[str, StoredToken] = {}
        self._failures = LoginFailures(self._write_later, clock=clock)
        self._watchers: set[asyncio.Queue[str]] = set()
        self._notes: set[asyncio.Task[None]] = set()
        self._devices: DeviceCalls | None = None

    def tell_devices(self, devices: DeviceCalls) -> None:
        """Have *devices* told of every use of a device's token."""
        self._devices = devices

    async def load(self) -> None:
        """Read the tokens from the store. Call once, before anything else."""
        self._tokens = {token.id: token for token in await self._store.load()}

    async def close(self) -> None:
        """Write down what is still to be noted."""
        self._failures.note_all()
        while self._notes:
            await asyncio.gather(*self._notes, return_exceptions=True)

    async def authenticate(self, token: str, *, address: str | None) -> Principal:
        """Return the token's principal (see `Authenticator.authenticate`)."""
        shown = parse_token(token)
        stored = self._tokens.get(shown.id) if shown else None
        if shown is None or not shown.matches(stored) or stored is None:
            raise self._failures.refuse(address or "unknown")
        if self._is_expired(stored):
            self._revoked(stored.id)
            raise Unauthenticated("This token has expired.")
        if stored.replaced_at is not None:
            self._note_replaced(stored, address)
            raise Unauthenticated("Another token took this one's place.")
        content = await self._told(stored)
        self._note_use(stored)
        return Principal(
            kind=stored.kind,
            scopes=stored.scopes,
            actor=actor_of(stored),
            device_id=stored.device_id,
            token_id=stored.id,
            address=address,
            content=content,
        )

    async def _told(self, stored: StoredToken) -> ContentMode:
        if stored.device_id is None or self._devices is None:
            return ContentMode.CLEAR
        await self._devices.called(stored)
        current = self._tokens.get(stored.id)
        if current is None or current.replaced_at is not None:
            raise Unauthenticated("This token was revoked meanwhile.")
        return self._devices.content_of(stored.device_id)

    def is_current(self, principal: Principal) -> bool:
        """Tell whether the principal's token is still good (no I/O)."""
        if principal.token_id is None:
            return principal.kind is PrincipalKind.LOCAL
        return self.is_good(principal.token_id)

    def is_good(self, token_id: str) -> bool:
        """Tell whether the token with that id would be let in."""
        stored = self._tokens.get(token_id)
        if stored is None or stored.replaced_at is not None:
            return False
        return not self._is_expired(stored)

    def device_of(self, token_id: str) -> DeviceId | None:
        """Return the device whose token it is, or None."""
        stored = self._tokens.get(token_id)
        return None if stored is None else stored.device_id

    def list_device_tokens(self, device_id: DeviceId) -> tuple[str, ...]:
        """Return the ids of the device's tokens that were not replaced."""
        return tuple(
            token.id
            for token in self._tokens.values()
            if token.device_id == device_id and token.replaced_at is None
        )

    def adopt(self, token: StoredToken) -> None:
        """Let a token in that its device's store wrote down."""
        self._tokens[token.id] = token

    def replaced(self, device_id: DeviceId, old_ids: tuple[str, ...]) -> None:
        """Let the device's old tokens in no more; who shows one is written down."""
        for token in tuple(self._tokens.values()):
            if token.device_id == device_id and token.replaced_at is not None:
                del self._tokens[token.id]
        for token_id in old_ids:
            old = self._tokens.get(token_id)
            self._revoked(token_id)
            if old is not None:
                self._tokens[token_id] = replace(old, replaced_at=self._clock())

    def forget_device(self, device_id: DeviceId) -> None:
        """Let none of the device's tokens in, and have its connections closed."""
        for token in tuple(self._tokens.values()):
            if token.device_id == device_id:
                self._revoked(token.id)

    async def watch_revocations(self) -> AsyncIterator[str]:
        """Yield the id of each token that is revoked, or found expired."""
        # Bounded by the number of tokens: each is revoked once.
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._watchers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.discard(queue)

    def list_tokens(self) -> tuple[StoredToken, ...]:
        """Return every token but those of devices, oldest first."""
        return tuple(t for t in self._tokens.values() if t.device_id is None)

    async def create(
        self,
        *,
        name: str,
        scopes: frozenset[Scope],
        lifetime: timedelta | None,
        actor: Principal,
    ) -> str:
        """Make a further token; return its text, which is shown this once.

        Raises `InvalidInput`. A bearer token never carries `ANSWER`: approving takes a
        paired device's key.
        """
        cleaned = clean_text(name, multiline=False)
        if not 1 <= len(cleaned) <= TOKEN_NAME_LIMIT_CHARACTERS:
            raise InvalidInput(
                f"A token's name has 1 to {TOKEN_NAME_LIMIT_CHARACTERS} characters."
            )
        if not scopes or not scopes <= ADMIN_SCOPES:
            raise InvalidInput(
                "A token has one or more of VIEW, READ, TERMINAL, ADMIN."
            )
        await self._forget_expired(actor)
        if len(self.list_tokens()) >= TOKENS_LIMIT:
            raise InvalidInput(f"There are {TOKENS_LIMIT} tokens; revoke one first.")
        now = self._clock()
        text, stored = mint_token(
            PrincipalKind.BROWSER,
            scopes,
            name=cleaned,
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
        )
        await self._store.add(stored, _record("token.create", stored.id, actor))
        self._tokens[stored.id] = stored
        return text

    async def _forget_expired(self, actor: Principal) -> None:
        # A browser's login ends by itself and is never asked for again: without this,
        # some hundred of them would fill the list.
        for token in [each for each in self.list_tokens() if self._is_expired(each)]:
            record = _record("token.expire", token.id, actor)
            await self._store.remove(token.id, record)
            self._revoked(token.id)

    async def revoke(self, token_id: str, *, actor: Principal) -> bool:
        """Revoke a token and have its connections closed; False if there is none.

        A device's token goes with its device (`revokeDevice`).
        """
        token = self._tokens.get(token_id)
        if token is None or token.device_id is not None:
            return False
        await self._store.remove(token_id, _record("token.revoke", token_id, actor))
        self._revoked(token_id)
        return True

    async def rotate_admin(self, path: Path, *, actor: Principal) -> None:
        """Replace the admin token: the file first, then the row; old sockets close."""
        old = self._admin_ids()
        text, stored = self._mint_admin()
        record = _record("token.rotate", stored.id, actor)
        # The row first: a crash between the two leaves a file nobody accepts, and
        # `ensure_admin` mends that at the next start.
        await self._store.replace(old, stored, record)
        await asyncio.to_thread(write_secret, path, text)
        self._tokens[stored.id] = stored
        for token_id in old:
            self._revoked(token_id)

    async def ensure_admin(self, path: Path) -> bool:
        """See to it that the file at *path* holds the admin token; True if made new.

        Raises `StateFolderUnsafe` if the file is a link or can be read by others.
        """
        text = await asyncio.to_thread(read_secret, path)
        shown = parse_token(text) if text else None
        known = shown is not None and shown.id in self._admin_ids()
        if shown and known and shown.matches(self._tokens[shown.id]):
            return False
        system = Principal(PrincipalKind.LOCAL, ADMIN_SCOPES, "system")
        await self.rotate_admin(path, actor=system)
        return True

    def _admin_ids(self) -> tuple[str, ...]:
        return tuple(
            token.id
            for token in self._tokens.values()
            if token.kind is PrincipalKind.ADMIN
        )

    def _mint_admin(self) -> tuple[str, StoredToken]:
        return mint_token(
            PrincipalKind.ADMIN,
            ADMIN_SCOPES,
            name="admin",
            created_at=self._clock(),
        )

    def _is_expired(self, token: StoredToken) -> bool:
        if token.kind is PrincipalKind.DEVICE:
            idle_since = token.last_used_at or token.created_at
            return idle_since + DEVICE_IDLE <= self._clock()
        return token.expires_at is not None and token.expires_at <= self._clock()

    def _revoked(self, token_id: str) -> None:
        if self._tokens.pop(token_id, None) is not None:
            for queue in self._watchers:
                queue.put_nowait(token_id)

    def _note_use(self, token: StoredToken) -> None:
        now = self._clock()
        if token.last_used_at and now - token.last_used_at < USE_NOTED_EVERY:
            return
        self._tokens[token.id] = replace(token, last_used_at=now)
        self._start(self._store.mark_used(token.id, now))
        if token.device_id is not None and self._devices is not None:
            self._start(self._devices.seen(token.device_id, now))

    def _note_replaced(self, token: StoredToken, address: str | None) -> None:
        now = self._clock()
        if token.last_used_at and now - token.last_used_at < USE_NOTED_EVERY:
            return
        self._tokens[token.id] = replace(token, last_used_at=now)
        record = AuditRecord(
            actor=actor_of(token),
            action="token.replaced",
            target_id=f"token:{token.id}",
            outcome=AuditOutcome.REFUSED,
            address=address,
        )
        self._write_later(record)

    def _write_later(self, record: AuditRecord) -> None:
        self._start(self._write_audit(record))

    async def _write_audit(self, record: AuditRecord) -> None:
        await self._audit.write(record)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._notes.add(task)
        task.add_done_callback(self._noted)

    def _noted(self, task: "asyncio.Task[None]") -> None:
        self._notes.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, StorageUnavailable):
            _log.warning("A note about tokens could not be written. %s", error)
        elif error is not None:
            _log.error("A note about tokens could not be written.", exc_info=error)


def actor_of(token: StoredToken) -> str:
    """Return how the audit log names who shows *token*."""
    if token.kind is PrincipalKind.ADMIN:
        return "admin"
    return token.device_id or f"token:{token.id}"


def _record(action: str, token_id: str, actor: Principal) -> AuditRecord:
    return AuditRecord(
        actor=actor.actor,
        address=actor.address,
        action=action,
        target_id=f"token:{token_id}",
        outcome=AuditOutcome.DONE,
    )
