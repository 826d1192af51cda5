r"""Owners of the recurring jobs of a trace: the values and deadlines of their runs. A model, not data.

A run is worth :math:`V = \max(1, \rho\, c\, E[d])`, with a value density
:math:`\rho = \mathrm{clip}(w e^{z/2}, 1, 40)` credits per node-round drawn once per recurring job, *z*
standard normal and *w* = 2, 6, 20 for free, middle and production priority. (A flat value per job
would be trivial: everything short is accepted.) The deadline is the expected arrival plus the 95 %
duration plus one round plus a slack by latency class. In classes 2 and 3 the value falls on a line
from *V* at the beginning of the slack to ``max(1, V / 2)`` at the deadline. No deadline lies beyond
``birth + max_delay - 1``; this cuts those of a few runs that came long before they were expected.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.resubmission import covered
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, LinearValue, ValueCurve
from marketsched.worlds.demand import BANDS, Demand
from marketsched.worlds.prediction import Prediction

BAND_DENSITY = np.array([2.0, 6.0, 20.0])  # credits per node-round by priority band
LOWEST_DENSITY, HIGHEST_DENSITY, DENSITY_SPREAD = 1.0, 40.0, 0.5
FALLING_CLASSES = (2, 3)


def value_densities(bands: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the value density of each recurring job, credits per node-round; ``bands`` index BANDS."""
    densities: NDArray[np.float64] = BAND_DENSITY[bands] * np.exp(DENSITY_SPREAD * rng.standard_normal(bands.size))
    return densities.clip(LOWEST_DENSITY, HIGHEST_DENSITY)


def value_curve(value: float, deadline: int, falling: int) -> ValueCurve:
    """Return ``value`` until ``deadline``, in the last ``falling`` rounds falling to ``max(1, value / 2)``.

    Examples
    --------
    >>> value_curve(8.0, 10, 4)([5, 6, 8, 10, 11])
    array([8., 8., 6., 4., 0.])
    """
    lowest = max(1.0, value / 2)
    if falling == 0 or lowest >= value:
        return DeadlineValue(value, deadline)
    return LinearValue(value, deadline - falling, (value - lowest) / falling, deadline)


class RecurringOwners:
    """The data drawn or known once per recurring job, one row of ``groups`` each, and the rules that hold for all.

    ``densities`` are credits per node-round, ``slack_rounds`` the slack of the deadline by latency class.
    """

    def __init__(
        self,
        groups: pd.DataFrame,
        demand: Demand,
        densities: NDArray[np.float64],
        slack_rounds: tuple[int, ...],
        max_delay: int,
        revealed: bool,
    ) -> None:
        # plain lists: read job by job, they are several times faster than arrays
        self._users: list[int] = groups["user"].tolist()
        self._groups: list[int] = groups["group"].tolist()
        self._classes: list[int] = groups["sched_class"].tolist()
        self._nodes: list[int] = demand.concurrency.tolist()
        self._bands = [BANDS[k] for k in demand.band.tolist()]
        self._borrowed: list[bool] = demand.borrowed.tolist()
        self._densities: list[float] = densities.tolist()
        self._slack = slack_rounds
        self._max_delay = max_delay
        self._revealed = revealed

    def job(self, g: int, run: int, prediction: Prediction, arrival: int, duration: int) -> Job:
        """Return run number ``run`` of recurring job ``g``: its statement, and what really happened."""
        nodes, latency_class, density = self._nodes[g], self._classes[g], self._densities[g]
        slack = self._slack[latency_class]
        wished = prediction.expected + prediction.duration.quantile(0.95) + 1 + slack
        deadline = min(wished, prediction.birth + self._max_delay - 1)
        value = max(1.0, density * nodes * prediction.duration.mean)
        truth = StatementOfWork.from_arrays(
            prediction.birth,
            nodes,
            value_curve(value, deadline, slack if latency_class in FALLING_CLASSES else 0),
            prediction.arrivals,
            prediction.durations,
            prediction.probabilities,
            revealed=self._revealed,
        )
        owner = f"u{self._users[g]}"
        group = f"{owner}-g{self._groups[g]}"
        tags = {
            "group": group,
            "class": latency_class,
            "band": self._bands[g],
            "deadline": deadline,
            "deadline_cut": deadline < wished,
            "value_density": density,
            "early": prediction.early,
            "borrowed_demand": self._borrowed[g],
        }
        signal = duration if self._revealed else None
        job = Job(f"{group}-r{run}", owner, truth, arrival, duration, signal, tags)
        tags["covered"] = covered(job)
        return job
