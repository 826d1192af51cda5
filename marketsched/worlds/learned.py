"""Laws for a window of the Google trace, learned from the days before it alone.

The recurring jobs are expected to do in the window what they did in the window of equal length just
before it: each of those past runs becomes a law under which exactly one statement of work is
certain. Round r of the past window stands for round r of the window, so births, arrivals and value
curves keep their rounds. At the beginning of the window not all of those runs are over:

* a run that has ended counts with the arrival and the duration that it really had;
* one that has come but not ended has its real arrival and the likeliest duration, or the rounds
  that it has been there if these are more;
* one that is announced but has not come has the likeliest case of what was announced and is still
  possible, whether or not it will ever come; if none is, it is left out.

So events in the window or later are never used. Two things are taken to be known as in the market itself: which
recurring jobs there are (chosen by the whole trace), and what each of them asks for and is worth.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.worlds.google import DAY_S, GoogleParameters, born_in_window, google_recurring, recurring_jobs
from marketsched.worlds.prediction import History, Prediction, PredictionRule
from marketsched.worlds.traces.trace import Source
from marketsched.worlds.workload import Workload, require


@dataclass(frozen=True)
class GoogleRecurring(GoogleParameters):
    """The workload ``google-recurring``: its parameters, its jobs, and their laws from the days before."""

    def build(self, rng: Rng, data: Source) -> Workload:
        """Return the workload; see `google_recurring`."""
        return google_recurring(data, rng=rng, parameters=self)

    def statement_laws(self, workload: Workload, rng: Rng, data: Source) -> list[StatementLaw]:
        """Return the laws from the days before the window: its runs, each expected once more; see `learned_laws`."""
        return learned_laws(data, rng=rng, parameters=self)


def learned_laws(source: Source = None, *, rng: Rng, parameters: GoogleParameters | None = None) -> list[StatementLaw]:
    """Return the laws of the window of ``google-recurring``, from the days before it.

    Parameters
    ----------
    source : path, optional
        Data folder; None: the one named by ``MARKETSCHED_DATA``.
    rng : int, Generator or None
        In the state that `google_recurring` gets it in, so that values and borrowed demand are
        those of the market.
    parameters : GoogleParameters, optional
        Those of the window.

    Returns
    -------
    list of StatementLaw
        One per run of the past window, in order of announcement; each has one case, of one
        requirement.

    Raises
    ------
    MissingDataError, TraceError
        If the trace files are not there or malformed.
    InvalidParameterError
        If the trace has no such days before the window, or no run was announced in them.

    Examples
    --------
    >>> laws = learned_laws("DATA", rng=1)  # doctest: +SKIP
    >>> len(laws)  # doctest: +SKIP
    """
    rng = generator_of(rng)
    parameters = parameters or GoogleParameters()
    first, days = parameters.first_day, parameters.days
    require(
        first >= days,
        f"first_day = {first}: expected at least days = {days}: laws are learned from as many days before the window",
    )
    past = replace(parameters, first_day=first - days)
    known = recurring_jobs(source, rng, past)
    origin, now = float(past.first_day * DAY_S), float(first * DAY_S)
    made: list[tuple[float, StatementLaw]] = []
    for g, history in enumerate(known.histories):
        so_far = known_by(history, now)
        for run, prediction in born_in_window(so_far, past, origin):
            case = _expected(so_far, run, prediction, origin, now, past)
            if case is None or case[0] > past.horizon:  # too late: left out of the market, too
                continue
            arrival, duration = case
            announced = known.owners.job(g, run, prediction, arrival, duration).truth
            sow = StatementOfWork.from_arrays(
                announced.birth, announced.concurrency, announced.value, [arrival], [duration], [1.0]
            )
            made.append((prediction.birth_s, StatementLaw.of(sow)))
    require(bool(made), f"first_day = {first}, days = {days}: no recurring job is born in the {days} days before")
    made.sort(key=lambda pair: pair[0])
    return [law for _, law in made]


def known_by(history: History, now: float) -> History:
    """Return the runs known at time ``now`` (s): earlier submissions, which of them have ended, and one to come.

    The submission to come, and ends that lie ahead or are not recorded, are infinite.
    """
    n = bisect_left(history.submits, now)
    ended = [end <= now for end in history.ends[:n]]  # NaN: not known to have ended
    return History(
        [*history.submits[:n], math.inf],
        [*(end if over else math.inf for end, over in zip(history.ends, ended, strict=False)), math.inf],
        [*(d if over else 0 for d, over in zip(history.durations, ended, strict=False)), 0],
    )


def _expected(
    so_far: History, run: int, prediction: Prediction, origin: float, now: float, rule: PredictionRule
) -> tuple[int, int] | None:
    """Return arrival and duration, rounds: what is known of them, else what is likeliest (of equals, the first)."""
    submitted, ended = so_far.submits[run], so_far.ends[run]
    if math.isinf(submitted):
        gone = math.floor((now - origin) / rule.round_seconds)  # rounds that are over
        possible = np.where(prediction.arrivals > gone, prediction.probabilities, 0.0)
        likeliest = int(np.argmax(possible))
        found = int(prediction.arrivals[likeliest]), int(prediction.durations[likeliest])
        return found if possible[likeliest] > 0 else None
    arrival = math.floor((submitted - origin) / rule.round_seconds) + 1
    if math.isinf(ended):
        mode = int(prediction.duration.values[np.argmax(prediction.duration.probabilities)])
        return arrival, max(mode, rule.rounds_of(now - submitted))
    return arrival, so_far.durations[run]
