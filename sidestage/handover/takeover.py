"""Taking a session over without a question of its: a fork now, or a prompt typed."""

import hashlib
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sidestage.audit import AuditOutcome, AuditRecord
from sidestage.canonical import pae
from sidestage.devices.model import Principal
from sidestage.errors import (
    AgentNotIdle,
    InvalidInput,
    OutsideSessionNotFound,
    OutsideSessionResumed,
    PromptNotSent,
    SidestageError,
    TerminalNotFound,
    TerminalNotRunning,
)
from sidestage.handover.answer_text import ANSWER_LIMIT_CHARACTERS, clean_typed
from sidestage.handover.book import OfferBook
from sidestage.handover.model import Continuation, Handoff, OfferBlock, OfferState
from sidestage.handover.modes import continuation_mode
from sidestage.handover.parts import HandoverParts
from sidestage.handover.store import Changes
from sidestage.handover.turns import last_order
from sidestage.handover.typing_in import Blocked, PromptTypist, Target
from sidestage.ids import ConversationId, SessionId, TerminalId, new_id
from sidestage.sessions.lineage import ToldStatus
from sidestage.sessions.model import Session, SessionState
from sidestage.terminals.forks import Fork
from sidestage.terminals.model import Terminal, TerminalState

PRESSES_LIMIT: Final = 5
"""How often Enter is tried on a prompt that stays in the box, once a second."""

_BLOCKED: Final = {
    OfferBlock.DIALOG: "The agent shows a dialog; answer that first.",
    OfferBlock.BUSY: "The agent is not waiting for a prompt now.",
    OfferBlock.NOT_READY: "The agent has not got to its prompt yet.",
}


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A fork that runs, and whether its parent was handed off to it."""

    terminal: Terminal
    handed_off: bool


class TakeOvers:
    """Forks live sessions on demand, and types prompts into terminals of ours."""

    def __init__(
        self, parts: HandoverParts, book: OfferBook, typist: PromptTypist
    ) -> None:
        self._parts = parts
        self._book = book
        self._typist = typist

    async def take_over(
        self,
        session_id: SessionId,
        *,
        cols: int,
        rows: int,
        idempotency_key: str | None,
        actor: Principal,
    ) -> TakenOver:
        """Fork a live idle session now (see `Handovers.take_over`)."""
        seed = _seed(session_id, idempotency_key, actor)
        terminal_id = TerminalId(f"terminal:{seed.hex()}")
        known = self._parts.terminals.get(terminal_id)
        if known is not None:
            return TakenOver(known, self._book.handoff_of(session_id) is not None)
        session = await self._parts.sessions.refresh(session_id)
        if session is None:
            raise OutsideSessionNotFound("That session is no longer in the list.")
        idle = await self._check_idle(session)
        fork = Fork(
            terminal_id=terminal_id,
            session_id=session_id,
            conversation_id=ConversationId(str(uuid.UUID(bytes=seed, version=4))),
            permission_mode=continuation_mode(session),
            cols=cols,
            rows=rows,
        )
        terminal = await self._parts.forks.fork(fork, actor=actor)
        handed_off = await self._hand_off(session, idle, fork, actor)
        return TakenOver(terminal, handed_off)

    async def send_prompt(
        self, terminal_id: TerminalId, text: str, *, actor: Principal
    ) -> Terminal:
        """Type a prompt into an idle terminal (see `Handovers.send_prompt`)."""
        prompt = _checked_prompt(text)
        terminal = self._parts.terminals.get(terminal_id)
        if terminal is None:
            raise TerminalNotFound("There is no terminal with that id.")
        if terminal.state is not TerminalState.RUNNING:
            raise TerminalNotRunning("This terminal has ended.")
        if terminal.session_id is None:
            raise AgentNotIdle("No agent waits for a prompt in this terminal.")
        target = Target(terminal.session_id, terminal_id)
        try:
            await self._typist.send(prompt, target, before_enter=_nothing)
        except Blocked as blocked:
            error = _not_sent(blocked.by)
            await self._audit_prompt(terminal_id, actor, error)
            raise error from None
        await self._press_until_taken(prompt, target)
        await self._audit_prompt(terminal_id, actor, None)
        return self._parts.terminals.get(terminal_id) or terminal

    async def _check_idle(self, session: Session) -> ToldStatus:
        if session.terminal_id is not None:
            raise OutsideSessionResumed(
                "This session is open in a terminal already.",
                terminal_id=session.terminal_id,
            )
        if session.state is SessionState.ENDED:
            raise AgentNotIdle("This session has ended. Resume it.")
        told = await self._parts.statuses.told_status(session.id)
        if told is None or told.state is not SessionState.IDLE:
            raise AgentNotIdle("The agent is not waiting for a prompt now.")
        return told

    async def _hand_off(
        self, session: Session, idle: ToldStatus, fork: Fork, actor: Principal
    ) -> bool:
        """Hand the parent off, unless a person used its keyboard meanwhile."""
        at = self._parts.clock()
        continuation = Continuation(fork.conversation_id, session.id, at)
        record = AuditRecord(
            actor=actor.actor,
            address=actor.address,
            action="session.take-over",
            target_id=session.id,
            outcome=AuditOutcome.DONE,
            detail=f"terminal={fork.terminal_id}",
        )
        changes = Changes(continuation=continuation, records=(record,))
        is_untouched = await self._parts.statuses.told_status(session.id) == idle
        order = None
        with suppress(SidestageError):
            order = await last_order(self._parts.transcripts, session.id)
        if not is_untouched or order is None:
            await self._book.note(changes)
            return False
        offer = self._book.open_of(session.id)
        if offer is not None:
            await self._book.close(offer, OfferState.SUPERSEDED, actor=actor)
        await self._book.hand_off(Handoff(session.id, at, order), changes)
        return True

    async def _press_until_taken(self, prompt: str, target: Target) -> None:
        """Press Enter again while the prompt stays in the box of an idle agent."""
        with suppress(Blocked, SidestageError):
            for _ in range(PRESSES_LIMIT):
                if not await self._typist.press_again(prompt, target):
                    return

    async def _audit_prompt(
        self, terminal_id: TerminalId, actor: Principal, error: SidestageError | None
    ) -> None:
        await self._parts.audit.write(
            AuditRecord(
                actor=actor.actor,
                address=actor.address,
                action="terminal.prompt",
                target_id=terminal_id,
                outcome=AuditOutcome.REFUSED if error else AuditOutcome.DONE,
                code=error.code.value if error else None,
            )
        )


def _seed(session_id: SessionId, key: str | None, actor: Principal) -> bytes:
    """Return 16 bytes: random, or with a key the same ones for the same request."""
    if key is None:
        return bytes.fromhex(new_id("").lstrip(":"))
    text = pae(("sidestage/take-over/v1", actor.credential, key, session_id))
    return hashlib.sha256(text).digest()[:16]


def _checked_prompt(text: str) -> str:
    prompt = clean_typed(text)
    if not prompt.strip():
        raise InvalidInput("A prompt must not be empty.")
    if len(prompt) > ANSWER_LIMIT_CHARACTERS:
        raise InvalidInput(f"A prompt has 1 to {ANSWER_LIMIT_CHARACTERS} characters.")
    return prompt


def _not_sent(by: OfferBlock) -> SidestageError:
    sentence = _BLOCKED.get(by)
    if sentence is not None:
        return AgentNotIdle(sentence)
    return PromptNotSent("Somebody's unsent text stands in the agent's prompt box.")


async def _nothing() -> None:
    """Write nothing down: a prompt is not kept."""
