"""Reads one field of a frame: what is wrong is `FrameInvalid`, never a crash."""

from pathlib import Path
from typing import Any

from terminal_host.wire import Frame, FrameInvalid


def read_object(value: object) -> Frame:
    """Return *value* as an object; raises `FrameInvalid`."""
    if not isinstance(value, dict):
        raise FrameInvalid("an object is missing")
    return value


def read_text(fields: Frame, name: str) -> str:
    """Return the text *name*; raises `FrameInvalid`."""
    value: Any = fields.get(name)
    # A zero would end the string early for the kernel.
    if not isinstance(value, str) or "\0" in value:
        raise FrameInvalid(f"{name} is no text")
    return value


def read_optional_text(fields: Frame, name: str) -> str | None:
    """Return the text *name*, or None; raises `FrameInvalid`."""
    return None if fields.get(name) is None else read_text(fields, name)


def read_texts(fields: Frame, name: str) -> tuple[str, ...]:
    """Return the list of texts *name*; raises `FrameInvalid`."""
    value = fields.get(name)
    if not isinstance(value, list):
        raise FrameInvalid(f"{name} is no list")
    return tuple(read_text({name: item}, name) for item in value)


def read_paths(fields: Frame, name: str) -> tuple[Path, ...]:
    """Return the list of paths *name*; raises `FrameInvalid`."""
    return tuple(Path(text) for text in read_texts(fields, name))


def read_flag(fields: Frame, name: str) -> bool:
    """Return the truth value *name*; raises `FrameInvalid`."""
    value = fields.get(name)
    if not isinstance(value, bool):
        raise FrameInvalid(f"{name} is neither true nor false")
    return value
