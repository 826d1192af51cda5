"""Owners that learn which report pays: a menu of strategies, and a learner that draws from it.

A `Learning` owner is a person with many jobs, one after the other (recurring jobs), who reports each of them as one
strategy of its menu says, and observes the result. In a repeated market (:mod:`marketsched.study.learning.runs`) one
choice is made per day and any learner will do. In a `Market` one choice is made per job, when it is submitted, and
only the realised utility is revealed, when the job has left the market: that is a bandit, so the learner must be
one::

    ann = Learning(value_menu(), "exp3", rng=np.random.default_rng(1))
    Market(MarketSetup(..., strategy=lambda job: ann.next_job()))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from marketsched.agents.learners import Draw, Learner, make_learner
from marketsched.agents.lies import (
    InflateConcurrency,
    PublicInformation,
    ScaleDuration,
    ScaleValue,
    ShiftDeadline,
    Strategy,
    Truthful,
    submission_delay,
)
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.legal import is_number
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.mechanisms.sow import StatementOfWork

TRUTH = "truth"


@dataclass(frozen=True, init=False)
class ReportMenu:
    """A few ways to report, by name; telling the truth, called "truth", is one of them.

    ``strategies`` are in the order of the actions; if the truth is not there, it comes first.

    Raises
    ------
    InvalidParameterError
        If one of them is no strategy, submits late, or is called "truth" and is not `Truthful`.

    Examples
    --------
    >>> from marketsched.agents.lies import ScaleValue, Truthful
    >>> menu = ReportMenu({"truth": Truthful(), "half": ScaleValue(0.5)})
    >>> len(menu), menu.names
    (2, ('truth', 'half'))
    """

    names: tuple[str, ...]
    strategies: tuple[Strategy, ...]

    def __init__(self, strategies: Mapping[str, Strategy]) -> None:
        chosen = dict(strategies)
        if TRUTH not in chosen:
            chosen = {TRUTH: Truthful(), **chosen}
        for name, strategy in chosen.items():
            if not callable(getattr(strategy, "report", None)) or submission_delay(strategy):
                raise InvalidParameterError(f"menu {name!r} = {strategy!r}: expected a strategy that reports at birth")
        if not isinstance(chosen[TRUTH], Truthful):
            raise InvalidParameterError(f"menu {TRUTH!r} = {chosen[TRUTH]!r}: expected Truthful()")
        object.__setattr__(self, "names", tuple(chosen))
        object.__setattr__(self, "strategies", tuple(chosen.values()))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def truth(self) -> int:
        """Place of the truth."""
        return self.names.index(TRUTH)

    def strategy_of(self, action: float) -> Strategy:
        """Return the strategy of an action, a place in the menu."""
        return self.strategies[int(action)]

    def share(self, action: float) -> float:
        """Return an action as a share of the last one, in [0, 1]; below 0 stands for none yet."""
        return action / max(1, len(self) - 1)


Menu = ReportMenu  # its name at the door of the agents


@dataclass(frozen=True)
class Bids:
    """Continuous bids: an action is the factor of the true value that is declared, in [0, ``highest``].

    Parameters
    ----------
    highest : float
        The largest factor, >= 1; 2.0: up to twice the true value. Without unit, as actions and ``truth``, which is 1.

    Examples
    --------
    >>> Bids().strategy_of(0.5)
    ScaleValue(f=0.5)
    """

    highest: float = 1.0
    truth = 1.0

    def __post_init__(self) -> None:
        """Check the largest factor: the truth has to be among the bids."""
        if not (is_number(self.highest) and 1.0 <= self.highest < float("inf")):
            raise InvalidParameterError(place="highest", value=self.highest, legal="a finite number >= 1")

    def strategy_of(self, action: float) -> Strategy:
        """Return the strategy that declares ``action`` times the value."""
        return Truthful() if action == 1.0 else ScaleValue(float(action))

    def share(self, action: float) -> float:
        """Return an action as a share of the largest, in [0, 1]; below 0 stands for none yet."""
        return action / self.highest


def value_menu(factors: Iterable[float] = (0.2, 0.4, 0.6, 0.8)) -> ReportMenu:
    """Return a menu of reports that scale every value; the truth stands at its place between them.

    Examples
    --------
    >>> value_menu((0.5, 2)).names
    ('value x 0.5', 'truth', 'value x 2')
    """
    ordered = sorted({float(f) for f in factors} | {1.0})
    return ReportMenu({TRUTH if f == 1 else f"value x {f:g}": Truthful() if f == 1 else ScaleValue(f) for f in ordered})


def misreport_menu(factors: Iterable[float] = (0.2, 0.4, 0.6, 0.8)) -> ReportMenu:
    """Return `value_menu` and lies about deadline, duration and nodes.

    Examples
    --------
    >>> misreport_menu((0.5,)).names
    ('value x 0.5', 'truth', 'deadline - 2', 'deadline + 2', 'duration x 0.5', 'duration x 2', 'nodes + 1')
    """
    values = value_menu(factors)
    others: dict[str, Strategy] = {
        "deadline - 2": ShiftDeadline(-2),
        "deadline + 2": ShiftDeadline(2),
        "duration x 0.5": ScaleDuration(0.5),
        "duration x 2": ScaleDuration(2.0),
        "nodes + 1": InflateConcurrency(1),
    }
    return ReportMenu(dict(zip(values.names, values.strategies, strict=True)) | others)


class Learning:
    """An owner that learns.

    Parameters
    ----------
    menu : ReportMenu or mapping of str to Strategy
        The reports to choose from.
    learner : str, or function
        A name of `make_learner`; or a function ``f(n_actions, low=..., high=..., horizon=...)`` that
        returns a `Learner`.
    rng : int, Generator or None
        Draws its choices.
    low, high : float, optional
        Range of its utilities, credits. By default plus and minus the announced ``max_value``: no owner
        gains more from a job or, where no job pays more than it declares, loses more. An owner of
        several jobs a day needs a wider one (or the learner adahedge, which needs none).
    horizon : int, optional
        How often it will choose, if that is known.

    Attributes
    ----------
    past : list of (str, float)
        Its report for each ended job of a `Market`, and the utility.

    Raises
    ------
    InvalidParameterError
        Here or at the first choice, if a parameter is out of range, or no range is given or announced.
    UnknownNameError
        At the first choice, if there is no such learner.

    Examples
    --------
    >>> from marketsched.agents.lies import PublicInformation
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> owner = Learning(value_menu((0.5,)), rng=1)
    >>> job = owner.next_job()
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 1, 1.0)])
    >>> report = job.report(truth, PublicInformation(5, 20, 10, max_value=10.0))
    >>> job.hear(1.5)  # what it brought; the next choice draws on it
    >>> report.value, owner.past
    (DeadlineValue(value=4.0, deadline=6), [('truth', 1.5)])
    """

    def __init__(
        self,
        menu: ReportMenu | Mapping[str, Strategy],
        learner: str | Callable[..., Learner] = "exp3",
        *,
        rng: Rng,
        low: float | None = None,
        high: float | None = None,
        horizon: int | None = None,
    ) -> None:
        self.menu = menu if isinstance(menu, ReportMenu) else ReportMenu(menu)
        self._kind, self._rng = learner, generator_of(rng)
        self._low, self._high, self._horizon = low, high, horizon
        self._learner: Learner | None = None
        self.past: list[tuple[str, float]] = []

    def learner(self, public: PublicInformation) -> Learner:
        """Return the learner, made at the first access."""
        if self._learner is None:
            if public.max_value is None and (self._low is None or self._high is None):
                raise InvalidParameterError(
                    "low and high are None, and the mechanism announces no max_value: expected a range of utilities"
                )
            low = -float(public.max_value or 0.0) if self._low is None else self._low
            high = float(public.max_value or 0.0) if self._high is None else self._high
            make = self._kind
            n, rest = len(self.menu), {"low": low, "high": high, "horizon": self._horizon}
            self._learner = make(n, **rest) if callable(make) else make_learner(make, n, **rest)  # type: ignore[arg-type]
        return self._learner

    def choose(self, public: PublicInformation) -> Draw:
        """Draw an action of the menu."""
        return self.learner(public).choose(self._rng)

    def learn(self, draw: Draw, seen: object) -> None:
        """Give the learner the outcome of a choice; see `Learner.learn`."""
        if self._learner is None:
            raise EventError("a learning owner got a utility before it made a choice")
        self._learner.learn(draw, seen)  # type: ignore[arg-type]

    def next_job(self) -> _JobOfLearning:
        """Return the strategy for one job of this owner."""
        return _JobOfLearning(self)


class _JobOfLearning:
    """How a `Learning` owner reports one job: drawn at its first report, learned from when it has ended."""

    def __init__(self, owner: Learning) -> None:
        self._owner = owner
        self.draw: Draw | None = None

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report of the drawn strategy; a job that is submitted again keeps it.

        Raises InvalidParameterError if the learner would have to see what other reports would have earned.
        """
        if self._owner.learner(public).sees != "own":
            raise InvalidParameterError(
                f"{type(self._owner.learner(public)).__name__} sees the utility of every report, which a market does "
                "not tell: expected exp3 or ucb1, or a repeated market"
            )
        if self.draw is None:
            self.draw = self._owner.choose(public)
        return self._owner.menu.strategies[self.draw.action].report(truth, public)

    def hear(self, utility: float) -> None:
        """Learn from what the job has earned, credits; called once, when the job leaves the market."""
        if self.draw is not None:
            self._owner.learn(self.draw, utility)
            self._owner.past.append((self._owner.menu.names[self.draw.action], float(utility)))
