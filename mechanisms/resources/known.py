"""A job on a cluster at its arrival: where it can run, how long, and what each completion is worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Options, Shape, cases_of, options_of
from marketsched.mechanisms.signals import Signals, observed_duration
from marketsched.mechanisms.sow import StatementOfWork


class Known(NamedTuple):
    """A job at its arrival, as its report and what the platform sees describe it."""

    options: Options  # n of them; none if the report excludes what happened
    lengths: NDArray[np.int64]  # (n, q), rounds that each option takes in each case that is possible
    chances: NDArray[np.float64]  # (q,), of the cases; add up to 1
    values: NDArray[np.float64]  # (m,), credits of completions in rounds arrival, arrival + 1, ...; later ones are 0

    @property
    def usual(self) -> NDArray[np.int64]:
        """Rounds that each option takes on average, at least 1, shape (n,)."""
        return np.maximum(1, np.rint(self.lengths @ self.chances)).astype(np.int64)


def known_at_arrival(
    sow: StatementOfWork,
    cluster: Cluster,
    arrival: int,
    signal: Signal,
    limits: MarketLimits,
    signals: Signals = "durations",
) -> Known:
    """Return the part of a report that applies to a job that has arrived.

    A statement without shapes is that of a market of identical nodes: one shape, ``concurrency`` tasks of a node each.
    With shapes the signal tells cases of the law apart; one that the report excludes leaves all of them. Without
    shapes, and if it is a duration (``signals``), it is how long the job takes.
    """
    seen = None if sow.shapes else observed_duration(signal, signals)
    shapes: tuple[Shape, ...]
    if seen is not None:
        shapes, cases, chances = (_of_nodes(sow, (seen,)),), np.zeros(1, dtype=np.int64), np.ones(1)
    else:
        points = sow.law.points_of(arrival, signal)
        durations, weights = sow.law.durations[points], sow.law.probabilities[points]
        mass = float(weights.sum())
        shapes = sow.shapes or (_of_nodes(sow, tuple(durations.tolist())),)
        reference = cases_of(shapes)
        cases = np.array([reference.index(d) for d in durations.tolist()], dtype=np.int64)
        chances = weights / mass if mass > 0 else weights
    options = options_of(shapes, cluster)
    lengths = options.durations[:, cases]
    possible = (lengths <= limits.max_duration).all(axis=1) & (chances.sum() > 0)
    if not possible.all():
        options, lengths = Options(*(_read_only(column[possible]) for column in options)), lengths[possible]
    last = limits.last_useful_completion(sow)
    values = sow.value.table(arrival, max(0, last - arrival + 1))
    return Known(options, np.ascontiguousarray(lengths), chances, np.asarray(values, dtype=np.float64))


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column as all options have them: kernels are compiled once, for such ones."""
    column.flags.writeable = False
    return column


def _of_nodes(sow: StatementOfWork, durations: tuple[int, ...]) -> Shape:
    """Return the shape of a statement for identical nodes (`Cluster.of_nodes`)."""
    return Shape({"node": 1}, {"node": durations}, tasks=sow.concurrency)
