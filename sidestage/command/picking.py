"""Which of the rows a word on the command line means: an id, its beginning, a name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidestage.command.failure import CommandFailed

Row = Mapping[str, Any]


def begins(row_id: str, named: str) -> bool:
    """Tell whether an id begins with *named*, which may leave out the id's kind."""
    kind, colon, body = row_id.rpartition(":")
    named = named.removeprefix(kind + colon)
    return bool(named) and body.startswith(named)


def matching(rows: Iterable[Row], named: str) -> list[Row]:
    """Return the rows that *named* may mean; one that is named exactly wins."""
    rows = list(rows)
    exact = [row for row in rows if row["id"] == named]
    return (
        exact
        or [row for row in rows if row["name"] == named]
        or [row for row in rows if begins(row["id"], named)]
    )


def only(found: Sequence[Row], named: str, *, kind: str, listing: str) -> Row:
    """Return the one row that was found; raises `CommandFailed` naming *listing*."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandFailed(f"There is no {kind} {named!r}. `{listing}` shows them.")
    ids = "".join(f"\n  {row['id']}  {row['name']}" for row in found)
    raise CommandFailed(f"{len(found)} {kind}s are like {named!r}; say more:{ids}")
