"""Writes the schema to a file, or tells whether the file is up to date.

`python -m resolvers.print_schema FILE [--check]`, which is what `scripts/schema` runs.
"""

import sys
from pathlib import Path

from resolvers.schema import print_sdl


def main(arguments: list[str]) -> int:
    """Write the schema, or compare with `--check`; return the exit status."""
    path = Path(arguments[0])
    text = print_sdl()
    if "--check" not in arguments[1:]:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{path} is out of date: run scripts/schema.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
