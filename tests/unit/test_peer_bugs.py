"""`docs/peer-bugs.md` names tests that exist, and a test or a reason in every row."""

import re
from pathlib import Path
from typing import Final

import pytest

CHECKOUT: Final = Path(__file__).parents[2]
ROWS: Final = tuple(
    line
    for line in (CHECKOUT / "docs/peer-bugs.md").read_text("utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| reported"))
)
NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_test_that_a_row_names_exists(row: str) -> None:
    named = NAMED.findall(row)
    assert named
    for path, name in named:
        text = (CHECKOUT / path).read_text("utf-8")
        assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), name


def test_the_table_is_not_empty() -> None:
    assert len(ROWS) >= 32
