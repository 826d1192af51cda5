"""Workloads that are built from a recorded trace or a generator: the parameters a scenario may set."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import BeforeValidator

from marketsched.config.configuration import Amount, Count, Positive
from marketsched.config.strict_yaml import Strict, number, whole

if TYPE_CHECKING:
    from marketsched.mechanisms.statement_law import StatementLaw
    from marketsched.worlds.google import GoogleParameters
    from marketsched.worlds.workload import Workload


class GoogleRecurring(Strict):
    """Recurring jobs of the Google trace: each run becomes a statement of work by the prediction rule.

    The window begins ``first_day`` days into the trace and lasts ``days``. ``lead_seconds`` is how
    long before its expected arrival a run is announced. ``history``, ``min_gaps``, ``filling``,
    ``widest_filled`` and ``max_points`` belong to the prediction rule.
    """

    kind: Literal["google-recurring"]
    first_day: Annotated[int, BeforeValidator(whole(0, 28))] = 14
    days: Annotated[int, BeforeValidator(whole(1, 29))] = 2
    durations: Literal["revealed", "hidden"] = "revealed"
    capacity: Count = 125
    max_concurrency: Count = 4
    max_duration: Count = 48
    longest_run_seconds: Positive = 14_400.0
    round_seconds: Positive = 300.0
    lead_seconds: Amount = 7_200.0
    history: Count = 20
    min_gaps: Count = 5
    filling: Annotated[float, BeforeValidator(number("[0, 1)"))] = 0.05
    widest_filled: Count = 40
    max_points: Count = 600

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload.

        Raises
        ------
        MissingDataError, TraceError
            If the trace is not there or damaged.
        InvalidParameterError
            If no job is born in the window.
        """
        from marketsched.worlds.google import google_recurring

        return google_recurring(data, rng=rng, parameters=self._parameters())

    def statement_laws(
        self, workload: Workload, rng: np.random.Generator, data: str | PathLike[str] | None
    ) -> list[StatementLaw]:
        """Return what the days before the window teach: its runs, each expected once more.

        See :func:`marketsched.worlds.learned.learned_laws`; ``rng`` must be as it was before
        :meth:`build`, so that groups have the demand and values they have in the market.

        Raises
        ------
        InvalidParameterError
            If there are no such days: ``first_day`` is below ``days``.
        """
        from marketsched.worlds.learned import learned_laws

        return learned_laws(data, rng=rng, parameters=self._parameters())

    def _parameters(self) -> GoogleParameters:
        from marketsched.worlds.google import GoogleParameters
        from marketsched.worlds.prediction import PredictionRule

        rule = PredictionRule(
            round_seconds=self.round_seconds,
            lead_seconds=self.lead_seconds,
            history=self.history,
            min_gaps=self.min_gaps,
            max_duration=self.max_duration,
            filling=self.filling,
            widest_filled=self.widest_filled,
            max_points=self.max_points,
        )
        return GoogleParameters(
            first_day=self.first_day,
            days=self.days,
            revealed=self.durations == "revealed",
            capacity=self.capacity,
            max_concurrency=self.max_concurrency,
            longest_run_s=self.longest_run_seconds,
            rule=rule,
        )


class SyntheticPipelines(Strict):
    """Made-up recurring jobs whose laws are known; needs no data file.

    Left out, ``capacity`` follows from ``utilisation``, the expected load as a share of it.
    """

    kind: Literal["synthetic-pipelines"]
    recurring_jobs: Count = 400
    birth_rounds: Count = 288
    utilisation: Positive = 0.85
    capacity: Annotated[int | None, BeforeValidator(lambda x: None if x is None else whole(2)(x))] = None
    durations: Literal["revealed", "hidden"] = "revealed"
    max_duration: Count = 48
    round_seconds: Positive = 300.0

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload; ``data`` is not used."""
        from marketsched.worlds.synthetic import SyntheticParameters, synthetic_pipelines

        parameters = SyntheticParameters(
            recurring_jobs=self.recurring_jobs,
            birth_rounds=self.birth_rounds,
            utilisation=self.utilisation,
            capacity=self.capacity,
            revealed=self.durations == "revealed",
            max_duration=self.max_duration,
            round_seconds=self.round_seconds,
        )
        return synthetic_pipelines(rng=rng, parameters=parameters)

    def statement_laws(
        self, workload: Workload, rng: np.random.Generator, data: str | PathLike[str] | None
    ) -> list[StatementLaw]:
        """Return the most favourable knowledge: every true statement is known for certain in advance."""
        from marketsched.worlds.workload import certain_laws

        return certain_laws(workload)
