"""Who shows a good token: tokens in memory, failures limited, uses written down."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from sidestage.audit import AuditLog, AuditOutcome, AuditRecord
from sidestage.devices.model import ADMIN_SCOPES, Principal, PrincipalKind, Scope
from sidestage.devices.secret_file import read_secret, write_secret
from sidestage.devices.tokens import StoredToken, mint_token, parse_token
from sidestage.errors import (
    InvalidInput,
    RateLimited,
    Unauthenticated,
)
from sidestage.text import clean_text

FAILURES_PER_MINUTE: Final = 10
"""Wrong tokens an address may show a minute before it is told to wait."""
ADDRESSES_LIMIT: Final = 1_000
"""Addresses whose failures are counted at once; the oldest is forgotten beyond it."""
USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""At most one write a minute says when a token was last used."""
TOKENS_LIMIT: Final = 200
TOKEN_NAME_LIMIT_CHARACTERS: Final = 64
_MINUTE: Final = timedelta(minutes=1)

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


class TokenKeeper:
    """`sidestage.devices.model.Authenticator`, and the life of tokens."""

    def __init__(
        self, store: TokenStore, audit: AuditLog, *, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._tokens: dict[str, StoredToken] = {}
        self._failures: dict[str, _Failures] = {}
        self._watchers: set[asyncio.Queue[str]] = set()
        self._notes: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read the tokens from the store. Call once, before anything else."""
        self._tokens = {token.id: token for token in await self._store.load()}

    async def close(self) -> None:
        """Write down what is still to be noted."""
        for address in tuple(self._failures):
            self._note_failures(address)
        while self._notes:
            await asyncio.gather(*self._notes, return_exceptions=True)

    async def authenticate(self, token: str, *, address: str | None) -> Principal:
        """Return the token's principal (see `Authenticator.authenticate`)."""
        shown = parse_token(token)
        stored = self._tokens.get(shown.id) if shown else None
        if shown is None or not shown.matches(stored) or stored is None:
            raise self._refuse(address or "unknown")
        if self._is_expired(stored):
            self._revoked(stored.id)
            raise Unauthenticated("This token has expired.")
        self._note_use(stored)
        return Principal(
            kind=stored.kind,
            scopes=stored.scopes,
            actor=actor_of(stored),
            device_id=stored.device_id,
            token_id=stored.id,
            address=address,
        )

    def is_current(self, principal: Principal) -> bool:
        """Tell whether the principal's token is still good (no I/O)."""
        if principal.token_id is None:
            return principal.kind is PrincipalKind.LOCAL
        stored = self._tokens.get(principal.token_id)
        return stored is not None and not self._is_expired(stored)

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
        """Return every token, oldest first."""
        return tuple(self._tokens.values())

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
        if len(self._tokens) >= TOKENS_LIMIT:
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

    async def revoke(self, token_id: str, *, actor: Principal) -> bool:
        """Revoke a token and have its connections closed; False if there is none."""
        if token_id not in self._tokens:
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

    def _refuse(self, address: str) -> Exception:
        now = self._clock()
        failures = self._failures.get(address)
        if failures and now - failures.since >= _MINUTE:
            self._note_failures(address)
            failures = None
        if failures is None:
            if len(self._failures) >= ADDRESSES_LIMIT:
                self._note_failures(next(iter(self._failures)))
            failures = self._failures[address] = _Failures(now)
            asyncio.get_running_loop().call_later(
                _MINUTE.total_seconds(), self._minute_over, address, failures
            )
        failures.count += 1
        if failures.count > FAILURES_PER_MINUTE:
            wait = _MINUTE - (now - failures.since)
            return RateLimited(
                "Too many wrong tokens. Wait a moment.",
                retry_after_ms=max(1, int(wait.total_seconds() * 1000)),
            )
        return Unauthenticated("This token is not known here.")

    def _minute_over(self, address: str, failures: "_Failures") -> None:
        if self._failures.get(address) is failures:
            self._note_failures(address)

    def _note_failures(self, address: str) -> None:
        # One row an address and minute, with a count: a flood must not fill the disk.
        failures = self._failures.pop(address)
        record = AuditRecord(
            actor="anonymous",
            action="login.refused",
            target_id=None,
            outcome=AuditOutcome.REFUSED,
            address=address,
            detail=f"count={failures.count}",
        )
        self._start(self._write_audit(record))

    async def _write_audit(self, record: AuditRecord) -> None:
        await self._audit.write(record)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._notes.add(task)
        task.add_done_callback(self._noted)

    def _noted(self, task: "asyncio.Task[None]") -> None:
        self._notes.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("A note about tokens could not be written.", exc_info=error)


class _Failures:
    """How often an address was wrong, and since when."""

    def __init__(self, since: datetime) -> None:
        self.since = since
        self.count = 0


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
