"""Sealing a question for devices, and again for one that was paired later."""

import hmac
import logging
from collections.abc import Iterable

from sidestage.devices.model import Device
from sidestage.devices.seals import Seals
from sidestage.envelopes.envelope import Envelope, Purpose, Subject
from sidestage.errors import SidestageError
from sidestage.handover.model import Offer, question_digest
from sidestage.handover.turns import LastTurn, read_last_turn
from sidestage.ids import DeviceId
from sidestage.sessions.model import Session
from sidestage.sessions.transcript import Transcripts
from sidestage.text import clean_path

_log = logging.getLogger(__name__)


class OfferSealer:
    """Makes a question's envelopes. It keeps no text."""

    def __init__(
        self, seals: Seals, transcripts: Transcripts, *, machine_secret: bytes
    ) -> None:
        self._seals = seals
        self._transcripts = transcripts
        self._machine_secret = machine_secret

    def digest(self, turn: LastTurn) -> bytes:
        """Return what the turn's question is known by."""
        return question_digest(turn.text, machine_secret=self._machine_secret)

    def seal(
        self,
        turn: LastTurn,
        session: Session,
        subject: Subject,
        devices: Iterable[Device],
    ) -> dict[DeviceId, Envelope]:
        """Seal the turn's question for each of *devices* that can take it."""
        content = {
            "question": turn.text,
            "summary": turn.summary,
            "title": session.name,
            "folder": clean_path(session.directory or ""),
        }
        sealed: dict[DeviceId, Envelope] = {}
        for device in devices:
            try:
                sealed[device.id] = self._seals.seal(
                    device, purpose=Purpose.OFFER, subject=subject, content=content
                )
            except SidestageError as error:
                # One device's trouble keeps no other from its offer.
                _log.warning("An offer was not sealed for a device: %s", error.code)
        return sealed

    async def seal_again(
        self, offer: Offer, session: Session, devices: Iterable[Device]
    ) -> dict[DeviceId, Envelope]:
        """Seal an offer's question, read anew, for *devices*.

        Nothing if the transcript no longer ends in that very question.
        """
        try:
            turn = await read_last_turn(self._transcripts, session.id)
        except SidestageError:
            return {}
        if turn is None or not hmac.compare_digest(
            self.digest(turn), offer.source.digest
        ):
            return {}
        return self.seal(turn, session, offer.subject, devices)
