"""Jobs of a log with their requests, on a cluster that is written out: the workload ``sacct-shapes``.

What a log of Slurm, of PBS or of pods tells: when a job came, how long it ran, and cores, memory and GPUs of each of
its nodes, which are the tasks of its one shape; see `marketsched.config.cluster_requests` for what is made up.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from marketsched.config.cluster_requests import RequestedShapes
from marketsched.worlds.logs.requests import requests_table


class SacctShapes(RequestedShapes):
    """A file of ``sacct``, of PBS or of pods as jobs with shapes; parameters as of `RequestedShapes`."""

    source: ClassVar[str] = "requests in a log"

    kind: Literal["sacct-shapes"]

    @staticmethod
    def table(path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return the jobs of the file; errors as of `requests_table`."""
        return requests_table(path)
