"""What the demonstration's agents are told, and how patient their persons are."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One agent in one folder: its prompts, told over and over.

    Times are in seconds. *patience* is how long a dialog stays open before the person
    at the keyboard answers it with *key*; None leaves it to whoever answers remotely.
    """

    folder: str
    prompts: tuple[str, ...]
    starts_after: float = 0.0
    pause: float = 12.0
    patience: float | None = 40.0
    key: str = "1"
    repeats: bool = True
    mode: str | None = None
    leaves_after: float | None = None
    """How long it stays idle after the last prompt before it ends; None stays."""


SCENES: Final = (
    Scene(
        folder="shop",
        prompts=(
            "Add a guest checkout to the shop",
            "Also send the receipt in the guest's language",
        ),
    ),
    Scene(
        folder="analytics",
        prompts=("Which database suits the analytics service?",),
        starts_after=1,
        pause=30,
        patience=90,
    ),
    Scene(
        folder="shop",
        prompts=("Make the search forgiving of typos",),
        starts_after=2,
        pause=120,
    ),
    Scene(
        folder="billing",
        prompts=("Plan the move to Python 3.14",),
        starts_after=3,
        pause=45,
        patience=75,
        mode="plan",
    ),
    Scene(
        folder="billing",
        prompts=("Why does the nightly import take three hours?",),
        starts_after=4,
        repeats=False,
    ),
    Scene(
        folder="übersetzungen",
        prompts=("Räum die Übersetzungen auf 翻訳を整理する",),
        starts_after=5,
        pause=15,
        leaves_after=10,
    ),
    Scene(
        folder="shop",
        prompts=("Write the release notes for 2.4",),
        repeats=False,
        leaves_after=0,
    ),
)
FOLDERS: Final = tuple(dict.fromkeys(scene.folder for scene in SCENES))
DIALOG_TESTS: Final = """#!/bin/sh
echo "collected 14 items"
echo
echo "tests/test_$1.py ..............                          [100%]"
echo
echo "14 passed in 0.42s"
"""
"""`./run-tests` in each folder: what the agents ask to run."""


def read_script() -> str:
    """Return the JSON of what the agents answer; every prompt of a scene is in it."""
    text = files(__package__).joinpath("script.json").read_text(encoding="utf-8")
    known = json.loads(text)
    missing = {it for scene in SCENES for it in scene.prompts} - known.keys()
    assert not missing, f"the script lacks {missing}"
    return text
