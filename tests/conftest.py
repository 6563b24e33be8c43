"""What every test may count on: an ordinary user, and nothing of the developer's."""

import os
import signal

import pytest

AS_ROOT = (
    "These tests run as an ordinary user. As root use scripts/test, which makes one."
)


# A shell that runs us in the background makes us ignore SIGINT, and so would every
# program that the tests start and then interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse end-to-end tests as root: sandboxes and `/proc` differ for root."""
    if os.geteuid() == 0 and any("/e2e/" in str(item.path) for item in items):
        pytest.exit(AS_ROOT, returncode=2)
