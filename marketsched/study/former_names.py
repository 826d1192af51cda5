"""Names of earlier versions, for scripts that use them; CHANGELOG.md says what is written instead."""

from __future__ import annotations

from typing import Any

from marketsched.comparisons.comparing import Comparison as ClusterComparison
from marketsched.comparisons.comparing import compare
from marketsched.config.scenario import Scenario as ClusterScenario
from marketsched.play.running import run as run_cluster

__all__ = ["ClusterComparison", "ClusterScenario", "compare_cluster", "run_cluster"]


def compare_cluster(
    scenario: Any, policies: Any = None, runs: int = 20, seed: int = 0, *, optimum: bool = True, **rest: Any
) -> ClusterComparison:
    """Compare policies as :func:`marketsched.compare` does; ``optimum=False`` is its ``optimum_seconds=0``.

    Examples
    --------
    >>> compared = compare_cluster("cluster-default", ["fairness", "drf"], runs=2, optimum=False)
    >>> compared.summary["policy"].tolist()
    ['fairness', 'drf']
    """
    return compare(scenario, policies, runs, seed, optimum_seconds=10.0 if optimum else 0.0, **rest)
