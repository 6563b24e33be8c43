"""The bench every test of the sandbox starts from."""

from pathlib import Path

import pytest

from tests.e2e.sandbox.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A fresh home, project and state folder."""
    return Bench(tmp_path)
