"""marketsched: truthful markets for statements of work, with agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.agents.result import RunResult as RunResult
    from marketsched.cluster_comparing import ClusterComparison as ClusterComparison
    from marketsched.cluster_comparing import compare_cluster as compare_cluster
    from marketsched.cluster_running import ClusterRun as ClusterRun
    from marketsched.cluster_running import run_cluster as run_cluster
    from marketsched.cluster_scenario import ClusterScenario as ClusterScenario
    from marketsched.comparing import Comparison as Comparison
    from marketsched.comparing import compare as compare
    from marketsched.experiments.reproducing import Reproduced as Reproduced
    from marketsched.experiments.reproducing import reproduce as reproduce
    from marketsched.experiments.sweeping import SweepResult as SweepResult
    from marketsched.experiments.sweeping import sweep as sweep
    from marketsched.learning_comparing import compare_learning as compare_learning
    from marketsched.learning_curves import LearningCurves as LearningCurves
    from marketsched.learning_markets import contested_market as contested_market
    from marketsched.learning_markets import repeated_scenario as repeated_scenario
    from marketsched.learning_runs import LearningRun as LearningRun
    from marketsched.learning_runs import learn as learn
    from marketsched.repeated_market import RepeatedMarket as RepeatedMarket
    from marketsched.replaying import replay as replay
    from marketsched.report import write_report as write_report
    from marketsched.running import run as run
    from marketsched.scenario import Scenario as Scenario

__version__ = "0.1.0"

_LAZY = {
    "scenario": ("Scenario",),
    "running": ("run",),
    "replaying": ("replay",),
    "comparing": ("compare", "Comparison"),
    "experiments.reproducing": ("reproduce", "Reproduced"),
    "experiments.sweeping": ("sweep", "SweepResult"),
    "learning_comparing": ("compare_learning",),
    "learning_curves": ("LearningCurves",),
    "learning_markets": ("contested_market", "repeated_scenario"),
    "learning_runs": ("learn", "LearningRun"),
    "repeated_market": ("RepeatedMarket",),
    "report": ("write_report",),
    "agents.result": ("RunResult",),
    "cluster_scenario": ("ClusterScenario",),
    "cluster_running": ("run_cluster", "ClusterRun"),
    "cluster_comparing": ("compare_cluster", "ClusterComparison"),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
