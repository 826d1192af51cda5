"""Jobs of a Slurm cluster with their requests, on a cluster that is written out: the workload ``sacct-shapes``.

What ``sacct`` tells: when a job came, how long it ran, and cores, memory and GPUs of each of its nodes, which are the
tasks of its one shape; see `marketsched.config.cluster_requests` for what is made up.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from marketsched.config.cluster_requests import RequestedShapes
from marketsched.worlds.logs.tres import tres_table


class SacctShapes(RequestedShapes):
    """A file of ``sacct`` as jobs with shapes; parameters as of `RequestedShapes`."""

    source: ClassVar[str] = "sacct's output"

    kind: Literal["sacct-shapes"]

    @staticmethod
    def table(path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return the jobs of the file; errors as of `tres_table`."""
        return tres_table(path)
