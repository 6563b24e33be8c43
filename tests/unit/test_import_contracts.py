"""The import contracts of pyproject.toml: what each forbids is really found."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

CHECKOUT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("api", "resolvers", "terminal_host", "sidestage")
PLANTED: Final = "planted"

PARTS: Final = "The parts depend one way"
COMMANDS: Final = "Nobody imports the commands"
DOMAIN: Final = "Inside the domain too"
DATABASE: Final = "Only storage knows the database"
DRIVER: Final = "Nobody names the database's driver, which SQLAlchemy loads"
ENGINES: Final = "Only the host knows PTYs and engines"
GRAPHQL: Final = "Only resolvers and api know GraphQL"
WEB: Final = "Only api and the gateway know the web"
SERVER: Final = "Only api runs a web server"
FILES: Final = "Only agents watch files"
PUSH: Final = "Only api pushes"
CRYPTOGRAPHY: Final = "Only envelopes know the primitives of cryptography"

VIOLATIONS: Final = [
    ("api", "sidestage.command.main", COMMANDS),
    ("api", "sidestage.__main__", COMMANDS),
    ("resolvers", "sidestage.command.main", COMMANDS),
    ("terminal_host", "sidestage.command.main", COMMANDS),
    ("terminal_host.host", "sidestage.__main__", COMMANDS),
    ("sidestage.agents", "sidestage.command.main", COMMANDS),
    ("sidestage", "sidestage.__main__", COMMANDS),
    ("resolvers", "api.limits", PARTS),
    ("resolvers", "terminal_host.wire", PARTS),
    ("terminal_host", "resolvers.parts", PARTS),
    ("sidestage.terminals", "terminal_host.wire", PARTS),
    ("sidestage.sessions", "sidestage.terminals.model", DOMAIN),
    ("sidestage.agents", "sidestage.storage.schema", DOMAIN),
    ("sidestage.storage", "sidestage.agents.exits", DOMAIN),
    ("terminal_host", "ptyprocess", ENGINES),
    ("terminal_host", "pyghostty", ENGINES),
    ("terminal_host", "pyte", ENGINES),
    ("terminal_host.gateway", "pyte", ENGINES),
    ("terminal_host", "starlette", WEB),
    ("terminal_host.host", "starlette", WEB),
    ("sidestage.envelopes", "starlette", WEB),
    ("terminal_host.gateway", "uvicorn", SERVER),
    ("terminal_host", "strawberry", GRAPHQL),
    ("sidestage.handover", "graphql", GRAPHQL),
    ("sidestage.envelopes", "sqlalchemy", DATABASE),
    ("sidestage.handover", "sqlalchemy", DATABASE),
    ("sidestage", "alembic", DATABASE),
    ("sidestage.storage", "aiosqlite", DRIVER),
    ("sidestage.handover", "watchfiles", FILES),
    ("sidestage.command", "watchfiles", FILES),
    ("sidestage.devices", "pywebpush", PUSH),
    ("resolvers", "py_vapid", PUSH),
    ("sidestage.envelopes", "cryptography", PUSH),
    ("sidestage", "nacl", CRYPTOGRAPHY),
    ("api", "nacl", CRYPTOGRAPHY),
]
"""In which package a module imports what it must not, and which contract says so."""


def copy_packages(folder: Path) -> Path:
    """Copy what the contracts are about, and nothing else, into *folder*."""
    shutil.copy(CHECKOUT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(
            CHECKOUT / package,
            folder / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return folder


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=60
    )


def planted_name(number: int, package: str) -> str:
    return f"{package}.{PLANTED}_{number}"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Plant every violation in a module of its own; return what is said of them."""
    folder = copy_packages(tmp_path_factory.mktemp("planted"))
    for number, (package, imported, _) in enumerate(VIOLATIONS):
        name = planted_name(number, package).replace(".", "/")
        (folder / f"{name}.py").write_text(f"import {imported}\n")
    linted = lint(folder)
    assert linted.returncode == 1, linted.stderr
    return linted.stdout


def test_the_packages_as_they_are_keep_every_contract(tmp_path: Path) -> None:
    linted = lint(copy_packages(tmp_path))
    assert linted.returncode == 0, linted.stdout
    assert " 0 broken" in linted.stdout


@pytest.mark.parametrize("number", range(len(VIOLATIONS)), ids=lambda it: str(it))
def test_a_forbidden_import_is_found(report: str, number: int) -> None:
    """Modules that no contract named, such as `terminal_host.wire`, went unseen."""
    package, imported, contract = VIOLATIONS[number]
    # A heading underlined, then what was found, for each contract that is broken.
    _, *parts = re.split(r"\n(.+)\n-{5,}\n", report)
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    assert f"{planted_name(number, package)} -> {imported} " in said[contract]
