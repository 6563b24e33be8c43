"""A writer of records that is killed at every step of its write, in a short loop.

`benchmarks/record_kills.py` is the loop; docs/performance.md has the long run's result.
"""

import subprocess
import sys
from pathlib import Path

LOOP = Path(__file__).parents[3] / "benchmarks" / "record_kills.py"


def test_a_killed_write_leaves_the_old_screen_or_the_new_one() -> None:
    """durability 5: opened, half written, written, synced, renamed, and deleted."""
    ran = subprocess.run(
        [sys.executable, str(LOOP), "--rounds", "21"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "21 kills" in ran.stdout
    assert ran.stdout.count("the old one") == 4
    assert ran.stdout.count("the new one") == 2
    assert ran.stdout.count("none") == 1
