import re
import tomllib
from importlib import resources

import pytest

from sidestage.handover.phrases import Phrases, load_phrases

FILE = resources.files("sidestage.handover") / "phrases.toml"
TABLES = tomllib.loads(FILE.read_text(encoding="utf-8"))
KEYS_OF_A_LANGUAGE = {
    *("please", "answer", "start", "tell", "what", "promise", "promised"),
    *("cues", "courtesies", "directed"),
}
PAIRS = [("please", "answer"), ("promise", "promised")]
PATTERNS = [
    (name, key, pattern)
    for name, table in TABLES.items()
    for key, patterns in table.items()
    for pattern in patterns
]


def test_the_file_is_read_once() -> None:
    assert load_phrases() is load_phrases()


@pytest.mark.parametrize("name", [name for name in TABLES if name != "any"])
def test_a_language_has_known_keys_and_whole_pairs(name: str) -> None:
    """A misspelt key was a rule that never applied."""
    table = TABLES[name]
    assert table.keys() <= KEYS_OF_A_LANGUAGE
    assert "courtesies" in table
    for one, other in PAIRS:
        assert (one in table) == (other in table)
    assert "tell" not in table or "what" in table


@pytest.mark.parametrize("index", range(len(PATTERNS)))
def test_every_pattern_stands_alone_and_wants_something(index: int) -> None:
    name, key, pattern = PATTERNS[index]
    compiled = re.compile(pattern, re.IGNORECASE)
    assert not compiled.search(""), (name, key)
    assert compiled.groups == 0, "capturing groups cost time and have no reader"


def test_the_composed_requests_work_in_both_orders() -> None:
    shared = ["negations", "self_asked", "tags", "answers", "afterthoughts"]
    tables: dict[str, dict[str, list[str]]] = {
        "a": {"please": ["please"], "answer": ["choose"], "courtesies": ["thanks"]},
        "b": {"tell": ["say"], "what": [" which"], "start": ["now"]},
        "c": {"promise": ["and I will"], "promised": ["^do"], "cues": ["go on"]},
        "any": {name: ["never"] for name in [*shared, "labels", "leads"]},
    }
    cue = Phrases.of(tables).cue
    for asking in ("please do choose", "choose, please", "PLEASE CHOOSE"):
        assert cue.search(asking)
    for asking in ("say it which", "now go", "do it and I will", "so go on"):
        assert cue.search(asking)
    for silent in ("please", "choose", "say", "which", "not now", "and I will", "do"):
        assert not cue.search(silent)
    assert not cue.search("please" + "." * 61 + "choose")
