"""Whose connection goes when all places are taken."""

import asyncio
import logging
import resource
from dataclasses import dataclass
from typing import Any, cast

import pytest

from api.doorway import (
    CONNECTIONS_AT_LEAST,
    CONNECTIONS_LIMIT,
    DESCRIPTORS_WANTED,
    WARN_AGAIN_SECONDS,
    Doorway,
    connections_limit,
    raise_descriptor_limit,
)


@dataclass(eq=False)
class Connection:
    """A transport that knows whether it was cut."""

    is_cut: bool = False

    def abort(self) -> None:
        self.is_cut = True


def come(to: Doorway) -> Any:
    made = Connection()
    to.enter(cast("asyncio.Transport", made))
    return made


def test_the_oldest_stranger_goes_first_then_the_longest_idle_then_the_newcomer() -> (
    None
):
    house = Doorway(3)
    stranger, idle, at_work = come(house), come(house), come(house)
    house.at_work(idle)
    house.idle(idle)
    house.at_work(at_work)
    first = come(house)
    house.at_work(first)
    assert (stranger.is_cut, idle.is_cut) == (True, False)
    second = come(house)
    house.at_work(second)
    assert idle.is_cut
    assert come(house).is_cut
    assert not any(it.is_cut for it in (at_work, first, second))
    assert len(house) == 3


def test_one_that_left_takes_no_place_however_late_its_news_comes() -> None:
    house = Doorway(2)
    gone = come(house)
    house.leave(gone)
    house.leave(gone)
    house.at_work(gone)
    house.idle(gone)
    assert len(house) == 0


def test_a_full_house_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    times = iter((0.0, WARN_AGAIN_SECONDS - 1, WARN_AGAIN_SECONDS))
    now = next(times)
    house = Doorway(1, monotonic=lambda: now)
    for later in (*times, None):
        come(house)
        come(house)
        now = now if later is None else later
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("descriptors", "places"),
    [(64, CONNECTIONS_AT_LEAST), (1024, 512), (65_536, CONNECTIONS_LIMIT)],
)
def test_descriptors_are_kept_for_all_but_the_network(
    descriptors: int, places: int
) -> None:
    assert connections_limit(descriptors) == places


ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, ENDLESS), DESCRIPTORS_WANTED),
        ((1024, 4096), 4096),
        ((ENDLESS, ENDLESS), DESCRIPTORS_WANTED),
        ((DESCRIPTORS_WANTED + 1, ENDLESS), DESCRIPTORS_WANTED + 1),
    ],
)
def test_the_soft_limit_is_raised_as_far_as_it_may(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: int
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: before)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert raise_descriptor_limit() == after
    assert all(limits == (after, before[1]) for limits in asked)


def test_a_system_that_refuses_more_descriptors_is_lived_with(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, ENDLESS))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with caplog.at_level(logging.WARNING):
        assert raise_descriptor_limit() == 256
    assert "At most 256 files" in caplog.text
