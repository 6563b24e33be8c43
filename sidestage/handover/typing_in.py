"""Typing a text into an agent's prompt box, and only there.

Enter approves an open dialog, so it is never sent on time alone: the registry says
idle, the text is pasted without Enter, the box shows exactly it, the registry still
says idle since the same moment; then Enter (docs/security.md, "Typing into an agent").
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from sidestage.handover.model import OfferBlock
from sidestage.handover.pace import Pace
from sidestage.handover.pastes import encode_pastes
from sidestage.handover.prompt_box import PromptBox, find_prompt_box
from sidestage.handover.turns import squeezed
from sidestage.ids import SessionId, TerminalId
from sidestage.sessions.lineage import AgentStatuses, ToldStatus
from sidestage.sessions.model import SessionState
from sidestage.terminals.typist import Keyboard, Typist

KILL_LINE: Final = b"\x15\x7f"
"""Ctrl-U empties a line of the box, Backspace joins it to the one above."""
LINES_LIMIT: Final = 40
"""Lines taken out of a box; a paste of more is folded into one."""

_ENTER: Final = b"\r"


@dataclass(frozen=True, slots=True)
class Target:
    """Whose prompt box it is, and since when its agent must have been idle.

    *idle_since* None accepts any moment. *is_ours* tells that nobody but us is
    expected to type there: a folded paste in it is one of ours.
    """

    session_id: SessionId
    terminal_id: TerminalId
    idle_since: datetime | None = None
    is_ours: bool = False


class Blocked(Exception):  # an outcome between us: no caller sees it
    """The text was not sent; *by* says why."""

    def __init__(self, by: OfferBlock) -> None:
        super().__init__(by.value)
        self.by = by


class PromptTypist:
    """Types texts into prompt boxes."""

    def __init__(self, typist: Typist, statuses: AgentStatuses, pace: Pace) -> None:
        self._typist = typist
        self._statuses = statuses
        self._pace = pace

    async def send(
        self,
        text: str,
        target: Target,
        *,
        before_enter: Callable[[], Awaitable[None]],
    ) -> None:
        """Type *text* and press Enter once. Raises `Blocked`, and then sent nothing.

        *before_enter* is awaited when all is ready, so that Enter can be written down
        before it is pressed; what it may have missed is checked after it.
        """
        idle = await self._idle(target)
        async with self._typist.open_keyboard(target.terminal_id) as keyboard:
            await self._paste(keyboard, target, text)
            try:
                await self._wait_shown(keyboard, text)
                await self._check_unchanged(target, idle)
                await before_enter()
                await self._check_box(keyboard, text)
                # The last look: nothing is awaited between it and Enter.
                await self._check_unchanged(target, idle)
            except Blocked:
                await self._clear(keyboard, target, text)
                raise
            await keyboard.write(_ENTER)

    async def press_again(self, text: str, target: Target) -> bool:
        """Press Enter once more if the box still shows *text* and the agent is idle.

        While the CLI starts, an Enter may get lost. False if the box shows it no more.
        """
        async with self._typist.open_keyboard(target.terminal_id) as keyboard:
            if not await self._stays_shown(keyboard, text):
                return False
            idle = await self._idle(target)
            await self._check_unchanged(target, idle)
            await keyboard.write(_ENTER)
            return True

    async def _idle(self, target: Target) -> ToldStatus:
        """Return the registry's word that the agent is idle, or raise `Blocked`."""
        told = await self._statuses.told_status(target.session_id)
        if told is None:
            raise Blocked(OfferBlock.NOT_READY)
        if told.state is SessionState.ASKING:
            raise Blocked(OfferBlock.DIALOG)
        moved = target.idle_since is not None and told.at > target.idle_since
        if told.state is not SessionState.IDLE or moved:
            raise Blocked(OfferBlock.BUSY)
        return told

    async def _check_unchanged(self, target: Target, idle: ToldStatus) -> None:
        if await self._idle(target) != idle:
            raise Blocked(OfferBlock.BUSY)

    async def _check_box(self, keyboard: Keyboard, text: str) -> None:
        box = find_prompt_box(await keyboard.screen())
        if box is None or not box.shows(text):
            raise Blocked(_reason(box))

    async def _paste(self, keyboard: Keyboard, target: Target, text: str) -> None:
        box = find_prompt_box(await keyboard.screen())
        if box is not None and target.is_ours and box.is_folded:
            # A server before us died after it had pasted.
            await self._clear(keyboard, target, text)
            box = find_prompt_box(await keyboard.screen())
        if box is None:
            raise Blocked(OfferBlock.NOT_READY)
        if box.is_free:
            await keyboard.write(encode_pastes(text, cols=box.cols, rows=box.rows))
        elif not box.holds(text):
            raise Blocked(OfferBlock.PROMPT_BOX_IN_USE)

    async def _wait_shown(self, keyboard: Keyboard, text: str) -> None:
        deadline = monotonic() + self._pace.shown_seconds
        while True:
            box = find_prompt_box(await keyboard.screen())
            if box is not None and box.shows(text):
                return
            if monotonic() > deadline:
                raise Blocked(_reason(box))
            await keyboard.wait_output(seconds=self._pace.look_again_seconds)

    async def _stays_shown(self, keyboard: Keyboard, text: str) -> bool:
        """Tell whether the box shows *text* for a while: what was sent leaves it."""
        deadline = monotonic() + self._pace.leaves_seconds
        while True:
            box = find_prompt_box(await keyboard.screen())
            if box is None or not box.shows(text):
                return False
            if monotonic() > deadline:
                return True
            await keyboard.wait_output(seconds=self._pace.look_again_seconds)

    async def _clear(self, keyboard: Keyboard, target: Target, text: str) -> None:
        """Take our text out of the box again; a dialog takes no keys of ours."""
        told = await self._statuses.told_status(target.session_id)
        if told is None or told.state is SessionState.ASKING:
            return
        for _ in range(LINES_LIMIT):
            box = find_prompt_box(await keyboard.screen())
            # Without a box on the screen it may be too tall to be seen whole.
            if box is not None and (box.is_free or not _is_rest_of(box, text)):
                return
            await keyboard.write(KILL_LINE)
            await keyboard.wait_output(seconds=self._pace.look_again_seconds)


def _reason(box: PromptBox | None) -> OfferBlock:
    if box is None:
        return OfferBlock.DIALOG
    return OfferBlock.NOT_READY if box.is_free else OfferBlock.PROMPT_BOX_IN_USE


def _is_rest_of(box: PromptBox, text: str) -> bool:
    """Tell whether what stands in the box is (the beginning of) what we pasted."""
    return box.shows(text) or squeezed(text).startswith(squeezed(box.text))
