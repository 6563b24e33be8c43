"""The bench every test of the sandbox starts from."""

import pytest

from tests.e2e.sandbox.bench import Bench


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A fresh home, project and state folder."""
    # Short: the path of a socket has 107 bytes.
    return Bench(tmp_path_factory.mktemp("b"))
