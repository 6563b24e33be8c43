"""How well questions are told from answers, on the labelled corpus."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidestage.handover.question import is_free_form_question

CORPUS = Path(__file__).with_name("corpus")
PRECISION_FLOOR = 0.95
RECALL_FLOOR = 0.90
LEAST_MESSAGES = 300


@dataclass(frozen=True)
class Message:
    """A line of the corpus."""

    text: str
    asks: bool
    language: str
    shape: str


def read(path: Path) -> list[Message]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Message(**json.loads(line)) for line in lines]


FILES = sorted(CORPUS.glob("*.jsonl"))
MESSAGES = [message for path in FILES for message in read(path)]


@dataclass(frozen=True)
class Figures:
    """What came of classifying *total* messages."""

    total: int
    found: int
    missed: tuple[str, ...]
    invented: tuple[str, ...]

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + len(self.invented))

    @property
    def recall(self) -> float:
        return self.found / max(1, self.found + len(self.missed))

    def __str__(self) -> str:
        lines = [
            f"{self.total} messages: P {self.precision:.3f}, R {self.recall:.3f}",
            *(f"  missed   {text!r}" for text in self.missed),
            *(f"  invented {text!r}" for text in self.invented),
        ]
        return "\n".join(lines)


def measure(messages: Iterable[Message]) -> Figures:
    verdicts = [(each, is_free_form_question(each.text)) for each in messages]
    return Figures(
        total=len(verdicts),
        found=sum(each.asks and says for each, says in verdicts),
        missed=tuple(m.text for m, says in verdicts if m.asks and not says),
        invented=tuple(m.text for m, says in verdicts if says and not m.asks),
    )


def test_questions_are_found_and_few_are_invented() -> None:
    figures = measure(MESSAGES)
    print(f"\n{figures}")
    assert figures.total >= LEAST_MESSAGES
    assert figures.precision >= PRECISION_FLOOR, str(figures)
    assert figures.recall >= RECALL_FLOOR, str(figures)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_no_language_is_below_the_floor(path: Path) -> None:
    figures = measure(read(path))
    assert figures.precision >= PRECISION_FLOOR, str(figures)
    assert figures.recall >= RECALL_FLOOR, str(figures)


@pytest.mark.parametrize("shape", sorted({each.shape for each in MESSAGES}))
def test_no_shape_of_message_is_below_the_floor(shape: str) -> None:
    """Averages hid that one shape, such as imperatives, was missed altogether."""
    figures = measure(each for each in MESSAGES if each.shape == shape)
    asking = sum(each.asks for each in MESSAGES if each.shape == shape)
    assert len(figures.invented) <= 0.05 * figures.total, str(figures)
    assert not asking or figures.recall >= RECALL_FLOOR, str(figures)


def test_the_corpus_has_both_kinds_and_no_message_twice() -> None:
    assert len({each.text for each in MESSAGES}) == len(MESSAGES)
    asking = sum(each.asks for each in MESSAGES)
    assert 0.4 < asking / len(MESSAGES) < 0.7
    assert len({each.language for each in MESSAGES}) >= 20
