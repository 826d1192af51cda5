"""Real Slurm clusters for tests; where its packages are missing, the tests are skipped and say which."""

import time

import pytest

from marketsched.slurm import SlurmError, missing_programs

WITH_SLURM = pytest.mark.skipif(
    bool(missing_programs()),
    reason=f"not installed (Debian: slurmctld slurmd slurm-client munge): {missing_programs()}",
)
WITH_FAST_SLURM = pytest.mark.skipif(
    bool(missing_programs(fast=True)),
    reason=f"not installed (Debian's Slurm and faketime): {missing_programs(fast=True)}",
)


def until(what, seconds=20.0):
    """Wait until something is true; while Slurm does not answer, it is not."""
    end = time.monotonic() + seconds
    while True:
        try:
            if what():
                return
        except SlurmError:
            pass
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)
