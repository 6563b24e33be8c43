"""The `sidestage` command."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

_NAMES: Final = ("api", "resolvers", "terminal_host")
"""Our other top-level names, common words: another folder may answer to them."""


def main() -> int:
    """Run the command; return the exit status."""
    wrong = find_foreign_package()
    if wrong is not None:
        sys.stderr.write(
            f"sidestage: {wrong} is not part of this installation of Sidestage. "
            "Run it from another folder, or without PYTHONPATH.\n"
        )
        return 2
    from sidestage.command.main import run

    return run(sys.argv[1:])


def find_foreign_package() -> str | None:
    """Return where one of our names leads elsewhere, or None if none does."""
    own = Path(__file__).resolve().parent.parent
    for name in _NAMES:
        found = importlib.util.find_spec(name)
        origin = None if found is None else found.origin
        if origin is None or Path(origin).resolve().parent.parent != own:
            return f"the package {name!r} in {origin or 'no folder'}"
    return None


if __name__ == "__main__":
    raise SystemExit(main())
