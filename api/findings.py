"""What a check of the machine found."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a check went."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what it looked at, how it went, and what to do."""

    name: str
    verdict: Verdict
    sentence: str
