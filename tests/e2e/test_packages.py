"""What users install, the wheel and the sdist, in an empty environment elsewhere."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.e2e.running_server import RunningServer
from tests.waiting import wait_for

CHECKOUT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
BUILD_SECONDS = 300


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from the sdist; return their folder."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)],
        cwd=CHECKOUT,
        check=True,
        timeout=BUILD_SECONDS,
        stdout=subprocess.DEVNULL,
    )
    return folder


def install(package: Path, folder: Path) -> Path:
    """Install *package* into a new environment; return its folder of programs."""
    environment = folder / "venv"
    python = environment / "bin" / "python"
    run_uv("venv", "--quiet", "--python", sys.executable, environment)
    run_uv("pip", "install", "--quiet", "--python", python, package)
    return environment / "bin"


def run_uv(*arguments: str | Path) -> None:
    subprocess.run([UV, *arguments], check=True, timeout=BUILD_SECONDS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("pattern", ["*.whl", "*.tar.gz"])
def test_an_installed_package_serves(
    packages: Path, pattern: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    [package] = packages.glob(pattern)
    # Short names: a socket's path has 107 bytes.
    programs = install(package, tmp_path_factory.mktemp("p"))
    home = tmp_path_factory.mktemp("h")
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{programs}:/usr/bin:/bin",
    }
    told = subprocess.run(
        [str(programs / "sidestage"), "schema"],
        env=environment,
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout == (CHECKOUT / "schema.graphql").read_text()
    server = RunningServer(environment=environment, python=programs / "python")
    with server:
        assert httpx.get(f"{server.url}/healthz").text == "ok\n"
        data = server.query("{ server { version } outsideSessions { nodes { id } } }")
        assert data["outsideSessions"]["nodes"] == []
        # The host is a module of the package too: a terminal needs it.
        project = home / "project"
        project.mkdir()
        assert server.register_project(project)
        wait_for(server.host_pid, "the terminal host listens")


def test_the_wheel_holds_all_packages_and_no_tests(packages: Path) -> None:
    [wheel] = packages.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {"api", "resolvers", "terminal_host", "sidestage"} <= tops
    assert "tests" not in tops
    # Without the marker a type checker takes everything of a package for untyped.
    for package in ("api", "resolvers", "terminal_host", "sidestage"):
        assert f"{package}/py.typed" in names
    assert "api/schema.graphql" in names
    # scripts/test has built the client; without it a page says what to run.
    assert "api/static/index.html" in names
    assert "api/static/graphiql.html" in names
    assert "sidestage/storage/migrations/env.py" in names
    assert not any(os.fspath(name).endswith(".pyc") for name in names)
