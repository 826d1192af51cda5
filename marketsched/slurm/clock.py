"""A clock that runs faster for some programs, by libfaketime (Debian: ``faketime``).

All programs that are started in its environment see one clock; their sleeps and timeouts are shortened alike.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress

VARIABLES = ("FAKETIME", "FAKETIME_SHARED", "LD_PRELOAD")  # that libfaketime reads
KEEPER = "echo $$; " + "; ".join(f'echo "${name}"' for name in VARIABLES) + "; exec sleep 1000000000"


class FastClock:
    """A clock that shows ``rate`` seconds for each that passes.

    Parameters
    ----------
    rate : float
        1: the real clock, and nothing is started.

    Attributes
    ----------
    environment : dict
        Variables for programs that shall see it.
    """

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate
        self.environment: dict[str, str] = {}
        self._keeper: subprocess.Popen[str] | None = None  # holds the moment at which the clock began
        self._sleeper = 0
        self._real, self._shown = time.monotonic(), time.time()

    def start(self, environment: Mapping[str, str]) -> None:
        """Begin; ``environment`` is that of the programs without the clock."""
        if self.rate == 1.0:
            return
        self._keeper = subprocess.Popen(
            ["faketime", "-f", f"+0 x{self.rate:g}", "sh", "-c", KEEPER],
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._keeper.stdout is not None
        self._sleeper = int(self._keeper.stdout.readline())
        self.environment = {name: self._keeper.stdout.readline().rstrip("\n") for name in VARIABLES}
        shown = subprocess.run(
            ["date", "+%s.%N"], env={**environment, **self.environment}, capture_output=True, text=True, check=True
        )
        self._real, self._shown = time.monotonic(), float(shown.stdout)

    def now(self) -> float:
        """Return the time it shows, seconds since 1970."""
        return self._shown + (time.monotonic() - self._real) * self.rate

    def wait_until(self, moment: float) -> float:
        """Sleep until it shows ``moment``; return the seconds on it that were left, below 0 if it had passed."""
        left = moment - self.now()
        if left > 0:
            time.sleep(left / self.rate)
        return left

    def stop(self) -> None:
        """End; programs that still use it see its time stand where the library leaves it."""
        if self._keeper is not None:
            with suppress(ProcessLookupError):
                os.kill(self._sleeper, 15)  # the keeper then removes what it shared, and ends
            self._keeper.wait(10)
            assert self._keeper.stdout is not None
            self._keeper.stdout.close()
            self._keeper = None
