"""`scripts/setup.sh`, over stand-ins for Python, pip and uv that install nothing."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
VERSION = "0.13.9"

# What `python -m venv` and `python -m pip install` leave behind, as far as the script
# looks: a pip only in an environment that was finished, a uv that knows its version.
PYTHON = f"""#!/bin/sh
case "$*" in
-c*) exit 0 ;;
"-m venv "*)
    echo "$*" >>"$CALLS"
    [ ! -e "$CALLS.interrupt" ] || {{ echo Traceback >&2; kill -INT $PPID; exit 1; }}
    mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; : >"$3/pip" ;;
"-m pip --version") [ -e "$(dirname "$0")/../pip" ] ;;
"-m pip install"*)
    echo "pip install" >>"$CALLS"
    printf '#!/bin/sh\\necho "$1" >>"$CALLS"\\necho uv {VERSION}\\n' \\
        >"$(dirname "$0")/uv"
    chmod +x "$(dirname "$0")/uv" ;;
esac
"""


class Checkout:
    """A folder with the scripts, and a log of what was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder.parent / "calls"
        shutil.copytree(SCRIPTS, folder / "scripts")
        for name in ("uv.lock", "pyproject.toml"):
            (folder / name).touch()
        self.python = folder.parent / "bin" / "python3"
        self.python.parent.mkdir()
        self.python.write_text(PYTHON)
        self.python.chmod(0o755)

    def set_up(self) -> tuple[int, str, list[str]]:
        """Return the status, what was said, and which tools were called."""
        self.calls.write_text("")
        done = subprocess.run(
            ["/bin/sh", "-c", 'set -eu; . "$root/scripts/setup.sh"; setup_python'],
            env={
                "PATH": f"{self.python.parent}:/usr/bin:/bin",
                "PYTHON": str(self.python),
                "CALLS": str(self.calls),
                "root": str(self.folder),
            },
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        calls = [line.split(" ")[0:2] for line in self.calls.read_text().splitlines()]
        called = [" ".join(words) for words in calls if words != ["--version"]]
        return done.returncode, done.stderr, called


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "s2").mkdir()
    return Checkout(tmp_path / "s2")


EVERYTHING = ["-m venv", "pip install", "sync"]


def test_a_second_start_installs_nothing(checkout: Checkout) -> None:
    status, said, called = checkout.set_up()
    assert (status, called) == (0, EVERYTHING), said
    assert checkout.set_up() == (0, "", [])


def test_another_python_on_the_path_is_no_reason_to_install(
    checkout: Checkout,
) -> None:
    """Each change of the PATH between two starts brought back "installing"."""
    checkout.set_up()
    checkout.python = checkout.python.rename(checkout.python.with_name("py"))
    assert checkout.set_up() == (0, "", [])


def test_a_changed_lock_file_is_installed(checkout: Checkout) -> None:
    checkout.set_up()
    (checkout.folder / "uv.lock").write_text("new")
    assert checkout.set_up()[2] == ["sync"]


def test_an_environment_that_was_not_finished_is_made_anew(checkout: Checkout) -> None:
    """Ctrl-C left a .venv without pip; later starts failed and blamed the network."""
    unfinished = checkout.folder / ".venv" / "bin"
    unfinished.mkdir(parents=True)
    shutil.copy(checkout.python, unfinished / "python")
    status, said, called = checkout.set_up()
    assert (status, called) == (0, EVERYTHING), said


def test_a_stop_says_so_without_a_traceback_and_the_next_start_goes_on(
    checkout: Checkout,
) -> None:
    """Python's own answer to Ctrl-C was a page of its insides."""
    interrupt = checkout.calls.with_name("calls.interrupt")
    interrupt.touch()
    status, said, _ = checkout.set_up()
    assert status == 128 + signal.SIGINT
    assert "stopped before everything was set up" in said
    assert "Traceback" not in said
    interrupt.unlink()
    assert checkout.set_up()[0] == 0


def test_a_moved_checkout_is_set_up_anew(checkout: Checkout) -> None:
    """The programs in .venv name the folder they were installed in; none started."""
    checkout.set_up()
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("s3"))
    assert checkout.set_up()[2] == EVERYTHING
    assert checkout.set_up()[2] == []
