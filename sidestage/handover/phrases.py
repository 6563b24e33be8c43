"""The phrases of `phrases.toml` as patterns: how people ask, and how they do not."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Self

PLEASE_REACH_CHARACTERS: Final = 60
"""How far "please" may stand from the verb it belongs to."""
TELL_REACH_CHARACTERS: Final = 25
"""How far "tell me" may stand from what is to be told."""

Table = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Phrases:
    """Each pattern is looked for in one sentence; the file says what each means."""

    cue: re.Pattern[str]
    courtesy: re.Pattern[str]
    directed: re.Pattern[str]
    negation: re.Pattern[str]
    self_asked: re.Pattern[str]
    tag: re.Pattern[str]
    answer: re.Pattern[str]
    afterthought: re.Pattern[str]
    label: re.Pattern[str]
    lead: re.Pattern[str]

    @classmethod
    def of(cls, tables: Mapping[str, Table]) -> Self:
        """Return the patterns of the languages and of "any" in *tables*."""
        languages = [table for name, table in tables.items() if name != "any"]
        shared = tables["any"]

        def every(name: str) -> re.Pattern[str]:
            return _compile(each for table in languages for each in table.get(name, ()))

        return cls(
            cue=_compile(each for table in languages for each in _cues(table)),
            courtesy=every("courtesies"),
            directed=every("directed"),
            negation=_compile(shared["negations"]),
            self_asked=_compile(shared["self_asked"]),
            tag=_compile(shared["tags"]),
            answer=_compile(shared["answers"]),
            afterthought=_compile(shared["afterthoughts"]),
            label=_compile(shared["labels"]),
            lead=_compile(shared["leads"]),
        )


@cache
def load_phrases() -> Phrases:
    """Return the phrases that are shipped; they are read once."""
    path = resources.files("sidestage.handover") / "phrases.toml"
    return Phrases.of(tomllib.loads(path.read_text(encoding="utf-8")))


def _cues(table: Table) -> Iterable[str]:
    """Yield the patterns that ask, the composed ones and the others."""
    please, answer = _any_of(table, "please"), _any_of(table, "answer")
    if please and answer:
        reach = f".{{0,{PLEASE_REACH_CHARACTERS}}}"
        yield f"{please}{reach}?{answer}"
        yield f"{answer}{reach}?{please}"
    if start := _any_of(table, "start"):
        yield f"^{start}"
    if (tell := _any_of(table, "tell")) and (what := _any_of(table, "what")):
        yield f"{tell}.{{0,{TELL_REACH_CHARACTERS}}}?{what}"
    if (promise := _any_of(table, "promise")) and (
        promised := _any_of(table, "promised")
    ):
        yield f"{promised}.*{promise}"
    yield from table.get("cues", ())


def _any_of(table: Table, name: str) -> str:
    patterns = table.get(name)
    return f"(?:{'|'.join(patterns)})" if patterns else ""


def _compile(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in patterns), re.IGNORECASE)
