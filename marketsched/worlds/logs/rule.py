"""The rule for data that no log has: classes, values, deadlines, the length of a round, and knowledge of durations.

The rule is called ``lognormal-classes``. A job has a class, 0 (patient) to 2 (urgent): that of the log's queue or
priority, where there are several; else by the wall time its owner requested (the longest third is patient, the
shortest urgent); else drawn, 40 % patient, 40 % in between, 20 % urgent. Its value is

    density x nodes x expected rounds,    density = m exp(s Z),  Z normal,

with m = 1, 3, 9 credits per node and round for the three classes and s = 0.7, until the announced mean run after its
arrival is over. A job without a deadline of its own then loses value with time, and is worth something for ever: half
of it is left after

    (h hours + k x announced mean run) U,    U uniform in [0.5, 1.5],

with h = 96, 24, 4 and k = 2, 1, 0.25 (`FallingValue`). With ``deadlines: drawn`` it is worth its value until

    arrival + longest announced time (1 + k U) + half an hour,

and nothing afterwards. Classes, densities and slacks have a stream of draws each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Finite, Maybe, Positive, Range, Whole, check_fields
from marketsched.worlds.logs.round_length import chosen_length

DENSITY, SLACK = (1.0, 3.0, 9.0), (2.0, 1.0, 0.25)  # by class
HALF_H = (96.0, 24.0, 4.0)  # hours of delay after which half of a falling value is left, by class
SHARES = (0.4, 0.4, 0.2)  # of the classes, where they are drawn
SPARE_S = 1800.0  # between the last useful end of a job and its deadline, where that is drawn
HOUR_S = 3600.0


@dataclass(frozen=True)
class LogRule:
    """The rule for drawn values, and for the information about a run before it ends.

    Parameters
    ----------
    name : "lognormal-classes"
        How classes, values and deadlines are drawn; see the module.
    durations : "hidden" or "revealed"
        Hidden: owners announce a law, and what happens is seen when it happens. Revealed: the duration is announced.
    law : "auto", "requested", "past" or "recurring"
        What owners announce where durations are hidden: the wall time they requested, for certain; what the last
        runs of the same user and executable took (where one is unknown: of the same user and width, then of the
        same width, then of all); or, ``recurring``, also when the run will come, from earlier ones of its user's
        executable, with all other runs left out. Auto: requested, where at least half of the runs say so, else past.
    classes : "auto", "queue", "requested", "drawn" or "equal"
        Where classes come from; auto: the first of the three that the log has; equal: every job is of the middle one.
    round_seconds : float, optional
        Length of a round; None: as of `round_length.chosen_length`.
    max_hours : float, optional
        D_max; longer runs are cut to it and counted. None: the longest run, or the longest time that was requested.
    spread : float
        s, the deviation of the logarithm of densities.
    scale : float
        Densities are m times this.
    deadlines : "none" or "drawn"
        None: values fall with time and never end, so that every job is run. Drawn: they end with deadlines that the
        log does not have. The deadlines that a log has are kept by either.
    slack : float
        k is 2, 1, 0.25 and h is 96, 24, 4 hours, times this.
    history : int
        How many earlier runs a law of the past is made of.
    checkpoint_every : int, optional
        Rounds of its work after which every job saves it, each time, and says so (`StatementOfWork`); saving takes no
        time, runs are as long as in the log. None: a run that is taken back loses all. Not for law ``recurring``.

    Examples
    --------
    >>> rule = LogRule(durations="revealed")
    >>> rule.durations, rule.law
    ('revealed', 'auto')
    """

    name: Literal["lognormal-classes"] = "lognormal-classes"
    durations: Literal["hidden", "revealed"] = "hidden"
    law: Literal["auto", "requested", "past", "recurring"] = "auto"
    classes: Literal["auto", "queue", "requested", "drawn", "equal"] = "auto"
    round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None
    max_hours: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None
    spread: Annotated[float, Finite("[0, 5]")] = 0.7
    scale: Positive = 1.0
    deadlines: Literal["none", "drawn"] = "none"
    slack: Amount = 1.0
    history: Annotated[int, Whole(1, 1000)] = 10
    checkpoint_every: Annotated[int | None, Maybe(Whole(1))] = None

    def __post_init__(self) -> None:
        check_fields(self)

    def length_for(self, runs: pd.DataFrame) -> float:
        """Return the length of a round, s."""
        return chosen_length(runs) if self.round_seconds is None else self.round_seconds

    def longest_for(self, runs: pd.DataFrame, length: float) -> int:
        """Return D_max, rounds of ``length`` s."""
        longest = runs[["run_s", "requested_s"]].max().max() if self.max_hours is None else HOUR_S * self.max_hours
        return max(1, math.ceil(longest / length))

    def law_for(self, runs: pd.DataFrame) -> str:
        """Return which law owners announce.

        Raises
        ------
        InvalidParameterError
            If the rule needs the requested time, and no run has one, or has checkpoints with law ``recurring``.
        """
        known = float(runs["requested_s"].notna().mean())
        if self.law == "requested" and known == 0:
            raise InvalidParameterError(
                place="rule.law", value="requested", legal="past or recurring: no run of this log has a requested time"
            )
        if self.law == "recurring" and self.checkpoint_every is not None:
            raise InvalidParameterError(
                place="rule.checkpoint_every", value=self.checkpoint_every, legal="None where the law is recurring"
            )
        return ("requested" if known >= 0.5 else "past") if self.law == "auto" else self.law

    def classes_for(self, runs: pd.DataFrame, rng: np.random.Generator) -> tuple[NDArray[np.int64], str]:
        """Return the class of each run, 0 to 2, and where it comes from; ``rng`` draws one number for each anyway.

        Raises
        ------
        InvalidParameterError
            If the rule needs a source that the log does not have.
        """
        drawn = np.searchsorted(np.cumsum(SHARES[:2]), rng.random(len(runs)), side="right")
        if self.classes == "equal":
            return np.ones(len(runs), np.int64), "equal"
        urgency, requested = runs["urgency"].to_numpy(), runs["requested_s"]
        queued = runs["queue"].nunique() > 1
        if self.classes in ("auto", "queue") and (urgency >= 0).any():
            return np.where(urgency >= 0, urgency, drawn), "the log's own"
        if self.classes in ("auto", "queue") and queued:
            return _thirds(runs.groupby("queue")["run_s"].transform("median")), "the log's queues, by their median run"
        if self.classes == "queue":
            raise InvalidParameterError(place="rule.classes", value="queue", legal="auto or drawn: there is one queue")
        if self.classes in ("auto", "requested") and requested.notna().any():
            return np.where(requested.notna(), _thirds(requested), drawn), "requested wall times, by thirds"
        if self.classes == "requested":
            raise InvalidParameterError(
                place="rule.classes", value="requested", legal="auto or drawn: no run has a requested time"
            )
        return drawn, "drawn: 40 % patient, 40 % in between, 20 % urgent"

    def in_one_line(self) -> str:
        """Return the rule in one line."""
        slack = "2, 1, 0.25 times the run"
        time = (
            f"until deadlines with a slack of {slack} (times {self.slack:g})"
            if self.deadlines == "drawn"
            else f"falling to half after 96, 24, 4 h + {slack} (times {self.slack:g}), and never to nothing"
        )
        return (
            f"{self.name}: values log-normal about 1, 3, 9 credits per node and round (times {self.scale:g}, "
            f"deviation {self.spread:g}), {time}, for patient, middle, urgent jobs; drawn where the log has none"
            + ("" if self.checkpoint_every is None else f"; work is saved every {self.checkpoint_every} rounds")
        )


def _thirds(x: pd.Series[float]) -> NDArray[np.int64]:
    """Return 2 for the shortest third, 0 for the longest."""
    ranks = x.rank(pct=True, method="average").fillna(0.5).to_numpy()
    return 2 - np.searchsorted([1 / 3, 2 / 3], ranks, side="left").astype(np.int64)


@dataclass(frozen=True)
class AnyRule(Range[Any]):
    """A section of a scenario that holds the keys of a `LogRule`; its value is that section, all keys written out."""

    def __call__(self, x: object) -> dict[str, Any]:
        """Return the keys, or raise ``ValueError``."""
        if isinstance(x, LogRule):
            return asdict(x)
        names = [each.name for each in fields(LogRule)]
        if not isinstance(x, Mapping) or not set(x) <= set(names):
            raise ValueError(f"a table with keys of {', '.join(names)}")
        try:
            return asdict(LogRule(**x))
        except InvalidParameterError as error:
            raise ValueError(f"a legal rule: {error}") from None
