"""A program that is never the same process for long: fork, end, and go on as the child.

`python3 -I -S hop.py FILE SECONDS [CHAINS]` appends a byte to FILE at each hop. It
ignores the hang-up and leaves its session each time. It is no test and imports none.
"""

import os
import select
import signal
import sys
import time

PAUSE_SECONDS = 150e-6
"""Too short for anybody who looks a process up before it signals it."""


def hop(path: str, until: float) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while time.time() < until:
        if os.fork():
            os._exit(0)
        os.setsid()
        os.write(file, b"x")
        # Nothing but the time limit ends this wait, or the signal that is to hit us.
        select.select((), (), (), PAUSE_SECONDS)


def main() -> None:
    path, seconds, *chains = sys.argv[1:]
    for _ in range(int(chains[0]) if chains else 1):
        if not os.fork():
            hop(path, time.time() + float(seconds))
            os._exit(0)


if __name__ == "__main__":
    main()
