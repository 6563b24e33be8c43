import json
import logging
import sys
from typing import Any

from sidestage.command.log_lines import JsonLines


def line(message: str, *arguments: object, **options: Any) -> dict[str, Any]:
    record = logging.LogRecord(
        "api.server", logging.WARNING, "file", 1, message, arguments, None, **options
    )
    record.created = 1_800_000_000.25
    text = JsonLines().format(record)
    assert "\n" not in text
    values: dict[str, Any] = json.loads(text)
    return values


def test_a_line_is_one_object_with_what_a_collector_needs() -> None:
    assert line("%d places are\ntaken", 7) == {
        "time": "2027-01-15T08:00:00.250Z",
        "level": "warning",
        "logger": "api.server",
        "message": "7 places are\ntaken",
    }


def test_a_traceback_is_a_field_of_the_line() -> None:
    try:
        int("bad")
    except ValueError:
        record = logging.LogRecord(
            "api", logging.ERROR, "file", 1, "It failed", (), sys.exc_info()
        )
    values = json.loads(JsonLines().format(record))
    assert values["message"] == "It failed"
    assert values["exception"].startswith("Traceback")
