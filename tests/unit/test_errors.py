import re
from pathlib import Path

from sidestage import errors
from sidestage.errors import ErrorCode, SidestageError

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"


def test_the_document_lists_every_code_once() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    rows = [m[1] for line in lines if (m := re.match(r"\| `([A-Z_]+)` \|", line))]
    assert sorted(rows) == sorted(code.value for code in ErrorCode)


def test_each_code_has_at_most_one_class() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type)
        and issubclass(value, SidestageError)
        and value is not SidestageError
    ]
    codes = [each.code for each in classes]
    assert len(codes) == len(set(codes))
    assert ErrorCode.INTERNAL not in codes
