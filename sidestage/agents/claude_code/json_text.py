"""Changes to a JSON text that leave every other byte as its owner wrote it. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_DEFAULT_INDENT: Final = "  "


class NotJson(Exception):
    """The text is no JSON object, or not of the form that is asked for."""

    def __init__(self, reason: str, *, line: int) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Item:
    """One member of an object, or one element of an array, in its text."""

    key: str | None
    start: int
    """Where it begins: its key, or its value in an array."""
    value_start: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """An object or array in its text: the offsets of its brackets, and its items."""

    start: int
    end: int
    """The offset of the closing bracket."""
    items: tuple[Item, ...]

    def find(self, key: str) -> Item | None:
        """Return the member with that key; of several the last, which counts."""
        return next((it for it in reversed(self.items) if it.key == key), None)


def read_root(text: str) -> Container:
    """Return the object *text* is; raises `NotJson` with the line."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise NotJson("it is nested too deeply", line=1) from None
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, line=error.lineno) from None
    start = _skip(text, 0)
    if not isinstance(value, dict):
        raise NotJson("this is no object", line=_line(text, start))
    return read_container(text, start, "{")


def read_container(text: str, start: int, bracket: str) -> Container:
    """Return the container that begins at *start* of a JSON text.

    Raises `NotJson` if that is anything else than *bracket* says.
    """
    if text[start] != bracket:
        kind = "object" if bracket == "{" else "list"
        raise NotJson(f"there is no {kind} here", line=_line(text, start))
    items = tuple(_items(text, start, is_object=bracket == "{"))
    end = _skip(text, items[-1].end if items else start + 1)
    return Container(start, end, items)


def _items(text: str, start: int, *, is_object: bool) -> Iterator[Item]:
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        item = _item(text, at, is_object=is_object)
        yield item
        at = _skip(text, item.end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _item(text: str, at: int, *, is_object: bool) -> Item:
    key, value_start = None, at
    if is_object:
        key, key_end = _DECODER.raw_decode(text, at)
        value_start = _skip(text, _skip(text, key_end) + 1)  # past the colon
    _, end = _DECODER.raw_decode(text, value_start)
    return Item(key, at, value_start, end)


def insert(text: str, container: Container, value: Any, *, key: str | None) -> str:  # noqa: ANN401 any JSON
    """Return *text* with one item more at the container's end, in the text's style."""
    unit = _find_indent(text)
    depth = _depth(text, container.start, unit) if unit else 0
    line_end = "\r\n" if "\r\n" in text else "\n"
    rendered = _render(value, unit, f"{line_end}{unit * (depth + 1)}")
    if key is not None:
        rendered = f"{json.dumps(key, ensure_ascii=False)}: {rendered}"
    lead = f"{line_end}{unit * (depth + 1)}" if unit else " "
    if container.items:
        at = container.items[-1].end
        return f"{text[:at]},{lead}{rendered}{text[at:]}"
    tail = f"{line_end}{unit * depth}" if unit else ""
    lead = lead if unit else ""
    return f"{text[: container.start + 1]}{lead}{rendered}{tail}{text[container.end :]}"


def remove(text: str, container: Container, item: Item) -> str:
    """Return *text* without *item* and the comma that goes with it."""
    index = container.items.index(item)
    if index > 0:
        return text[: container.items[index - 1].end] + text[item.end :]
    if len(container.items) > 1:
        return text[: item.start] + text[container.items[1].start :]
    return text[: container.start + 1] + text[container.end :]


def _render(value: Any, unit: str, line_start: str) -> str:  # noqa: ANN401 any JSON
    if not unit:
        return json.dumps(value, ensure_ascii=False)
    rendered = json.dumps(value, ensure_ascii=False, indent=unit)
    return rendered.replace("\n", line_start)


def _find_indent(text: str) -> str:
    """Return what the text indents its first level by; "" for one on one line."""
    found = _INDENT.search(text)
    if found is not None:
        return found[1]
    return _DEFAULT_INDENT if len(text.strip()) <= len("{}") else ""


def _depth(text: str, at: int, unit: str) -> int:
    """Return how deep the line that holds *at* is indented."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return (len(line) - len(line.lstrip(" \t"))) // len(unit)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
