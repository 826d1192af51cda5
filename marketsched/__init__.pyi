from .agents.result import RunResult as RunResult
from .config.scenario import Scenario as Scenario
from .play.replaying import replay as replay
from .play.running import run as run
from .results.result import Result as Result
from .results.result import load as load
from .show.reports.page import write_report as write_report
from .study.comparisons.comparing import Comparison as Comparison
from .study.comparisons.comparing import compare as compare
from .study.former_names import ClusterComparison as ClusterComparison
from .study.former_names import ClusterScenario as ClusterScenario
from .study.former_names import compare_cluster as compare_cluster
from .study.former_names import run_cluster as run_cluster
from .study.learning.comparing import compare_learning as compare_learning
from .study.learning.markets import contested_market as contested_market
from .study.learning.markets import repeated_scenario as repeated_scenario
from .study.learning.repeated_market import RepeatedMarket as RepeatedMarket
from .study.learning.runs import LearningRun as LearningRun
from .study.learning.runs import learn as learn
from .study.papers.reproducing import reproduce as reproduce
from .study.sweeps.sweeping import SweepResult as SweepResult
from .study.sweeps.sweeping import sweep as sweep

__version__: str
