"""For which sessions hooks may make requests and offers."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.devices.model import Principal
from sidestage.errors import InvalidInput
from sidestage.projects.registry import PATH_LIMIT_BYTES, contains

EXCLUDED_LIMIT: Final = 200
"""Each request and each offer is held against every one of them."""


@dataclass(frozen=True, slots=True)
class AdoptionPolicy:
    """The owner's decision: on or off, and folders that are left alone.

    *excluded* are absolute real paths; each covers what lies in it, by whole
    components: `/a/b` does not cover `/a/bc`.
    """

    enabled: bool = True
    excluded: tuple[str, ...] = ()


class Adoption(Protocol):
    """The policy in force. It is asked anew before every request and offer."""

    @property
    def policy(self) -> AdoptionPolicy:
        """The policy as it is now."""

    def adopts(self, directory: str | None) -> bool:
        """Tell whether sessions of that folder may make requests and offers (no I/O).

        A folder that is not known is not adopted once any folder is excluded. It is
        given without links, as `Session.directory` is.
        """

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        """Put *policy* in force and on disk; raises `InvalidInput`.

        Returned is what is in force: every folder with its links resolved.
        """


class AdoptionStore(Protocol):
    """Where the policy is written down, each change with its audit record."""

    async def load(self) -> AdoptionPolicy:
        """Return the policy; the default one if none was ever set."""

    async def save(self, policy: AdoptionPolicy, record: AuditRecord) -> None:
        """Write *policy* over the one before."""


class AdoptionKeeper:
    """`Adoption`, over a store. Made by `open`."""

    def __init__(self, store: AdoptionStore, policy: AdoptionPolicy) -> None:
        self._store = store
        self._policy = policy
        self._changing = asyncio.Lock()
        self._changed = asyncio.Event()

    @classmethod
    async def open(cls, store: AdoptionStore) -> "AdoptionKeeper":
        """Read the policy from the store."""
        return cls(store, await store.load())

    @property
    def policy(self) -> AdoptionPolicy:
        """The policy as it is now."""
        return self._policy

    @property
    def changed(self) -> asyncio.Event:
        """Set once another policy is in force; each change has an event of its own.

        Take it before you read the policy, and no change is missed.
        """
        return self._changed

    def adopts(self, directory: str | None) -> bool:
        """Tell whether sessions of that folder may make requests and offers."""
        if not self._policy.enabled:
            return False
        if directory is None or not directory.startswith("/"):
            return not self._policy.excluded
        # A folder that was gone at the first look is told as it was recorded.
        path = "/" + os.path.normpath(directory).lstrip("/")  # it keeps two slashes
        return not any(contains(folder, path) for folder in self._policy.excluded)

    async def wait_change(self) -> None:
        """Return once the policy was set again."""
        await self._changed.wait()

    async def set_policy(
        self, policy: AdoptionPolicy, *, actor: Principal
    ) -> AdoptionPolicy:
        """Put *policy* in force and on disk; raises `InvalidInput`."""
        if len(policy.excluded) > EXCLUDED_LIMIT:
            raise InvalidInput(f"At most {EXCLUDED_LIMIT} folders can be excluded.")
        for path in policy.excluded:
            _check_path(path)
        folders = await asyncio.to_thread(_resolve_all, policy.excluded)
        resolved = AdoptionPolicy(policy.enabled, folders)
        record = AuditRecord(
            actor=actor.actor,
            address=actor.address,
            action="adoption.set",
            target_id=None,
            outcome=AuditOutcome.DONE,
            detail=f"enabled={resolved.enabled} excluded={len(folders)}",
        )
        async with self._changing:
            await self._store.save(resolved, record)
            self._policy = resolved
            # Whoever waits now is woken; whoever waits next gets a fresh event.
            self._changed.set()
            self._changed = asyncio.Event()
        return resolved


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise InvalidInput("Give each excluded folder by its absolute path.")
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise InvalidInput("A folder's name is not valid Unicode.") from None
    if b"\0" in encoded or b"\n" in encoded or len(encoded) > PATH_LIMIT_BYTES:
        raise InvalidInput("That is not a path.")


def _resolve_all(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the real paths, sorted; a folder that does not exist yet counts too."""
    return tuple(sorted({_resolve(path) for path in paths}))


def _resolve(path: str) -> str:
    try:
        return str(Path(path).resolve())
    except (OSError, RuntimeError) as error:
        raise InvalidInput("An excluded folder is a loop of links.") from error
