"""An oracle that copies of a market share until one of them must change it.

A copy of a market is made for each lie that a search tries. What most of them ask of the oracle is one table of failure
probabilities; that it follows the jobs from then on serves estimates that are never made. So a copy shares the oracle,
reads from it what it can, and lists the updates that its own oracle would need. Only when an estimate needs it does the
copy make its own oracle, and apply these updates in the same order: estimates are the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Law
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.posted.exact_oracle import ExactOracle
from marketsched.mechanisms.posted.oracle import FailureOracle, MonteCarloOracle


class KeptOracle:
    """An oracle, and whether copies of a market share it (``shared``), which is then not changed.

    An ordinary pickle holds it; a `Snapshot` (`marketsched.truthfulness.situations.guarded_market`) holds this object
    itself.
    """

    def __init__(self, oracle: FailureOracle) -> None:
        self.oracle = oracle
        self.shared = False

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptOracle, (self.oracle,)

    def share(self) -> bool:
        """Let copies share it, and return True; False: what they would have to copy later on is not known."""
        self.shared = self.shared or type(self.oracle) in (ExactOracle, MonteCarloOracle)
        return self.shared

    @property
    def size(self) -> int:
        """Bytes, of the paths if there are any."""
        paths = getattr(self.oracle, "_paths", None)
        return 0 if paths is None else int(paths.draws.nbytes + paths.loads.nbytes)


class OracleInUse:
    """The calls of a mechanism to the oracle that is attached to it."""

    def __init__(self, oracle: FailureOracle) -> None:
        self._kept = KeptOracle(oracle)
        self._untold: list[tuple[str, tuple[Any, ...]]] = []  # events that the shared oracle has not had yet

    # -- what changes nothing ----------------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """Whether estimates are exact."""
        return self._kept.oracle.exact

    @property
    def limits(self) -> MarketLimits:
        """The announced limits."""
        return self._kept.oracle.limits

    def check(self, law: Law) -> None:
        self._kept.oracle.check(law)

    # -- estimates ---------------------------------------------------------------------------------

    def table(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        return self._prepared().table(concurrency, n_starts, n_durations)

    def failure_table(self, concurrency: int) -> NDArray[np.float64]:
        return self._prepared().failure_table(concurrency)

    def at_rest(self) -> FailureOracle:
        return (self.own() if self._untold else self._kept.oracle).at_rest()

    def _prepared(self) -> FailureOracle:
        """Return an oracle that is ready to estimate; what that takes of the market's own one is not forgotten."""
        if not self._kept.shared:
            return self._kept.oracle
        if self._untold:
            return self.own()
        self._untold.append(("prepare", ()))
        return self._kept.oracle.at_rest()

    def own(self) -> FailureOracle:
        """Return the oracle, up to date; the caller owns it."""
        if self._kept.shared:
            self._kept = KeptOracle(self._kept.oracle.branched())
        oracle = self._kept.oracle
        for event, arguments in self._untold:
            getattr(oracle, event)(*arguments)
        self._untold = []
        return oracle

    def statistics(self) -> dict[str, Any]:
        return (self.own() if self._untold else self._kept.oracle).statistics()

    # -- events ------------------------------------------------------------------------------------

    def submitted(self, job: JobId, order: int, width: int, law: Law, starts: NDArray[np.int64]) -> None:
        self._tell("submitted", job, order, width, law, starts)

    def arrived(self, arrivals: Iterable[tuple[JobId, int, int]]) -> None:
        self._tell("arrived", list(arrivals))

    def removed(self, job: JobId) -> None:
        self._tell("removed", job)

    def advanced(self, now: int) -> None:
        self._tell("advanced", now)

    def probe(self, concurrency: int, law: Law, starts: NDArray[np.int64], table: NDArray[np.float64]) -> None:
        self._tell("probe", concurrency, law, starts, table)

    def _tell(self, event: str, *arguments: Any) -> None:
        if self._kept.shared:
            self._untold.append((event, arguments))
        else:
            getattr(self._kept.oracle, event)(*arguments)
