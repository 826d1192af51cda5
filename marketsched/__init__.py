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
    from marketsched.config.scenario import Scenario as Scenario
    from marketsched.play.replaying import replay as replay
    from marketsched.play.running import run as run
    from marketsched.results.result import Result as Result
    from marketsched.results.result import load as load
    from marketsched.show.reports.page import write_report as write_report
    from marketsched.study.comparisons.comparing import Comparison as Comparison
    from marketsched.study.comparisons.comparing import compare as compare
    from marketsched.study.learning.comparing import compare_learning as compare_learning
    from marketsched.study.learning.curves import LearningCurves as LearningCurves
    from marketsched.study.learning.markets import contested_market as contested_market
    from marketsched.study.learning.markets import repeated_scenario as repeated_scenario
    from marketsched.study.learning.repeated_market import RepeatedMarket as RepeatedMarket
    from marketsched.study.learning.runs import LearningRun as LearningRun
    from marketsched.study.learning.runs import learn as learn
    from marketsched.study.papers.reproducing import Reproduced as Reproduced
    from marketsched.study.papers.reproducing import reproduce as reproduce
    from marketsched.study.sweeps.sweeping import SweepResult as SweepResult
    from marketsched.study.sweeps.sweeping import sweep as sweep

__version__ = "0.1.0"

_LAZY: dict[str, tuple[str, ...]] = {
    "agents.result": ("RunResult",),
    "clusters.comparing": (
        "ClusterComparison",
        "compare_cluster",
    ),
    "clusters.running": (
        "ClusterRun",
        "run_cluster",
    ),
    "clusters.scenario": ("ClusterScenario",),
    "config.scenario": ("Scenario",),
    "play.replaying": ("replay",),
    "play.running": ("run",),
    "results.result": (
        "Result",
        "load",
    ),
    "show.reports.page": ("write_report",),
    "study.comparisons.comparing": (
        "Comparison",
        "compare",
    ),
    "study.learning.comparing": ("compare_learning",),
    "study.learning.curves": ("LearningCurves",),
    "study.learning.markets": (
        "contested_market",
        "repeated_scenario",
    ),
    "study.learning.repeated_market": ("RepeatedMarket",),
    "study.learning.runs": (
        "LearningRun",
        "learn",
    ),
    "study.papers.reproducing": (
        "Reproduced",
        "reproduce",
    ),
    "study.sweeps.sweeping": (
        "SweepResult",
        "sweep",
    ),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
