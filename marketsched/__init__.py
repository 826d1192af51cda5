"""marketsched: truthful markets for statements of work, with agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.agents.result import RunResult as RunResult
    from marketsched.clusters.comparing import ClusterComparison as ClusterComparison
    from marketsched.clusters.comparing import compare_cluster as compare_cluster
    from marketsched.clusters.running import ClusterRun as ClusterRun
    from marketsched.clusters.running import run_cluster as run_cluster
    from marketsched.clusters.scenario import ClusterScenario as ClusterScenario
    from marketsched.comparisons.comparing import Comparison as Comparison
    from marketsched.comparisons.comparing import compare as compare
    from marketsched.experiments.reproducing import Reproduced as Reproduced
    from marketsched.experiments.reproducing import reproduce as reproduce
    from marketsched.experiments.sweeping import SweepResult as SweepResult
    from marketsched.experiments.sweeping import sweep as sweep
    from marketsched.learning.comparing import compare_learning as compare_learning
    from marketsched.learning.curves import LearningCurves as LearningCurves
    from marketsched.learning.markets import contested_market as contested_market
    from marketsched.learning.markets import repeated_scenario as repeated_scenario
    from marketsched.learning.repeated_market import RepeatedMarket as RepeatedMarket
    from marketsched.learning.runs import LearningRun as LearningRun
    from marketsched.learning.runs import learn as learn
    from marketsched.replaying import replay as replay
    from marketsched.reports.page import write_report as write_report
    from marketsched.running import run as run
    from marketsched.scenario import Scenario as Scenario

__version__ = "0.1.0"

_LAZY = {
    "scenario": ("Scenario",),
    "running": ("run",),
    "replaying": ("replay",),
    "comparisons.comparing": ("compare", "Comparison"),
    "experiments.reproducing": ("reproduce", "Reproduced"),
    "experiments.sweeping": ("sweep", "SweepResult"),
    "learning.comparing": ("compare_learning",),
    "learning.curves": ("LearningCurves",),
    "learning.markets": ("contested_market", "repeated_scenario"),
    "learning.runs": ("learn", "LearningRun"),
    "learning.repeated_market": ("RepeatedMarket",),
    "reports.page": ("write_report",),
    "agents.result": ("RunResult",),
    "clusters.scenario": ("ClusterScenario",),
    "clusters.running": ("run_cluster", "ClusterRun"),
    "clusters.comparing": ("compare_cluster", "ClusterComparison"),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
