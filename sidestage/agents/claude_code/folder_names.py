"""How the CLI names the folder of a folder's transcripts."""

from pathlib import Path
from typing import Final

FOLDER_NAME_LIMIT: Final = 200
"""From here on the CLI cuts the encoded name and adds a hash."""
_BASE_36: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def encode_folder(directory: Path) -> str:
    """Return the name the CLI gives the folder of *directory*'s transcripts.

    UTF-16 units outside [A-Za-z0-9] become `-`; a longer name is cut at 200 and gets a
    32-bit hash of the path in base 36 (2.1.328).
    """
    raw = str(directory).encode("utf-16-le", "surrogatepass")
    units = [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]
    characters = (chr(u) for u in units)
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in characters)
    if len(name) <= FOLDER_NAME_LIMIT:
        return name
    return f"{name[:FOLDER_NAME_LIMIT]}-{_base_36(abs(_hash_units(units)))}"


def _hash_units(units: list[int]) -> int:
    """Return Java's string hash: a signed 32-bit number."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _base_36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _BASE_36[digit] + digits
        if not number:
            return digits
