"""The orders in which sessions can be paged, as values the cursors name."""

from enum import StrEnum


class SessionOrder(StrEnum):
    """How a list of sessions is ordered."""

    STARTED = "STARTED"
    LAST_ACTIVITY = "LAST_ACTIVITY"
    NAME = "NAME"


ORDERS = {
    SessionOrder.STARTED: (
        "Latest start first. Stable: paging neither repeats nor skips a session."
    ),
    SessionOrder.LAST_ACTIVITY: (
        "Latest activity first. Unstable: a session that moves while you page may "
        "be repeated or skipped. For a list that stays right, use the feed."
    ),
    SessionOrder.NAME: "By name, A first, without regard to case.",
}
