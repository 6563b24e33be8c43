import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from sidestage.__main__ import find_foreign_package


def test_our_own_packages_answer_to_our_names() -> None:
    assert find_foreign_package() is None


def test_another_folder_that_answers_to_our_names_is_refused(tmp_path: Path) -> None:
    """A project with a package of its own named `api` shadowed ours."""
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "sidestage", "schema"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "'api'" in done.stderr
    assert "another folder" in done.stderr


def test_a_missing_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_all_but_one(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "resolvers" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_all_but_one)
    assert find_foreign_package() == "the package 'resolvers' in no folder"
