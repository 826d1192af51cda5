"""Instances of services with their requests, on a cluster that is written out: the workload ``instance-shapes``.

The format is that of Alibaba's trace of disaggregated recommendation models (``cluster-trace-gpu-v2025``); see
`marketsched.config.cluster_requests` for what is made up.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from marketsched.config.cluster_requests import RequestedShapes
from marketsched.worlds.logs.instances import instance_table


class InstanceShapes(RequestedShapes):
    """A table of instances as jobs with shapes; parameters as of `RequestedShapes`.

    An instance accepts the kinds that are named as its role (``hn``: with a GPU, ``cn``: without), else all.
    """

    source: ClassVar[str] = "a table of instances"

    kind: Literal["instance-shapes"]

    @staticmethod
    def table(path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return the instances of the file; errors as of `instance_table`."""
        return instance_table(path)
