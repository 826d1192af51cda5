r"""Learners that choose among a few actions again and again, and their theorems on regret.

Each round a learner draws one of :math:`n` actions and then learns utilities: of all actions (full
information: `Hedge`, `AdaHedge`), or of the one it took (bandit: `Exp3`, `Ucb1`). Its *regret* after
T rounds is what the best single action would have earned in the same rounds, less what it has earned
in expectation over its own draws. If all owners of a repeated market have small regret, their play is
close to a coarse correlated equilibrium, whatever the market is.

Utilities are in credits, in a range [low, high] that is given beforehand (`AdaHedge` needs none), and
:math:`R = high - low`. The theorems, for every sequence of utilities that does not react to the
learner's own draws:

================  ===================================================================  ==========================
learner           regret at most                                                       theorem
================  ===================================================================  ==========================
Hedge, T known    :math:`R \sqrt{T \ln n / 2}`                                         [CL06]_, Theorem 2.2
Hedge, T unknown  :math:`R (2 \sqrt{T \ln n / 2} + \sqrt{\ln n / 8})`                  [CL06]_, Theorem 2.3
AdaHedge          :math:`S (\sqrt{T \ln n} + \frac43 \ln n + 2)`, S: the largest       [REGK14]_, Section 2
                  spread that any one round has shown
Exp3, T known     :math:`R \sqrt{2 T n \ln n}` in expectation                          [BC12]_, Theorem 3.1
Exp3, T unknown   :math:`2 R \sqrt{T n \ln n}` in expectation                          [BC12]_, Theorem 3.1
================  ===================================================================  ==========================

`Ucb1` is made for utilities drawn afresh from one law per action: an action worse by :math:`\Delta` (as a
share of R) is taken at most :math:`8 \ln T / \Delta^2 + 1 + \pi^2/3` times in expectation ([ACF02]_, Theorem 1).

References
----------
.. [CL06] Cesa-Bianchi, Lugosi: Prediction, Learning, and Games, Cambridge University Press, 2006.
.. [REGK14] de Rooij, van Erven, Grünwald, Koolen: Follow the Leader If You Can, Hedge If You Must,
   Journal of Machine Learning Research 15, 2014.
.. [BC12] Bubeck, Cesa-Bianchi: Regret Analysis of Stochastic and Nonstochastic Multi-armed Bandit
   Problems, Foundations and Trends in Machine Learning 5, 2012.
.. [ACF02] Auer, Cesa-Bianchi, Fischer: Finite-time Analysis of the Multiarmed Bandit Problem,
   Machine Learning 47, 2002.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mechanisms.legal import Count, legal

Sees = Literal["all", "own"]

SLACK = 1e-9  # of the range: sums of payments are rounded


class Draw(NamedTuple):
    """An action, and how likely it was when it was drawn."""

    action: int
    probability: float


class Learner(ABC):
    """The frame of all learners, which choose among ``n_actions`` actions.

    Utilities lie between ``low`` and ``high``, credits. ``horizon`` is T, the rounds that will be played; None: not
    known, the learner is slower to settle. ``sees`` tells the feedback of `learn`: utilities of all actions, or of its
    own; ``rounds``, how often it has learned.
    """

    sees: ClassVar[Sees]
    needs_range: ClassVar[bool] = True  # False: ``low`` and ``high`` mean nothing

    @legal
    def __init__(self, n_actions: Count, *, low: float = 0.0, high: float = 1.0, horizon: Count | None = None) -> None:
        self.n_actions = n_actions
        self.low = low
        self.high = high
        if not self.low < self.high:
            raise InvalidParameterError(f"low = {low!r}, high = {high!r}: expected low < high")
        self.horizon = horizon
        self.rounds = 0

    @property
    @abstractmethod
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each action is to be drawn next, shape (n_actions,)."""

    @abstractmethod
    def regret_bound(self, rounds: int) -> float:
        """Return the theorem's bound on regret after ``rounds`` rounds, credits; inf: nothing."""

    def choose(self, rng: np.random.Generator) -> Draw:
        """Draw the next action; nothing is learned by that."""
        p = self.probabilities
        # One uniform number, so that learners of all kinds take as much from their streams.
        action = min(int(np.searchsorted(np.cumsum(p), rng.random() * p.sum(), side="right")), self.n_actions - 1)
        return Draw(action, float(p[action]))

    def learn(self, draw: Draw, seen: ArrayLike) -> None:
        """Take note of the utility of the action drawn, or of all, shape (n_actions,), by ``sees``; credits.

        Raises InvalidParameterError if it has another shape, or lies outside the range; nothing is learned then.
        """
        earned = np.asarray(seen, dtype=np.float64)
        shape = (self.n_actions,) if self.sees == "all" else ()
        if earned.shape != shape:
            raise InvalidParameterError(f"utilities of shape {earned.shape}: expected {shape}")
        if not np.isfinite(earned).all():
            raise InvalidParameterError(f"utility {earned.tolist()}: expected finite numbers")
        if self.needs_range:
            slack = SLACK * (self.high - self.low)
            if not ((earned >= self.low - slack) & (earned <= self.high + slack)).all():
                raise InvalidParameterError(
                    f"utility {earned.tolist()}: expected numbers in [{self.low:g}, {self.high:g}], the range low and "
                    "high that the learner was given"
                )
            earned = np.clip(earned, self.low, self.high)
        self._learn(draw, earned)
        self.rounds += 1

    @abstractmethod
    def _learn(self, draw: Draw, earned: NDArray[np.float64]) -> None:
        """Take note of checked utilities."""


class Hedge(Learner):
    r"""Exponential weights from the utilities of all actions: :math:`p_k \propto \exp(\eta_t U_k)`.

    With T known :math:`\eta = \sqrt{8 \ln n / T} / R`, else :math:`\eta_t = \sqrt{8 \ln n / t} / R`.

    Examples
    --------
    >>> hedge = Hedge(2, horizon=100)
    >>> for _ in range(100):
    ...     hedge.learn(Draw(0, 0.5), [0.2, 0.7])
    >>> hedge.probabilities.round(4).tolist()
    [0.0, 1.0]
    """

    sees = "all"

    def __init__(self, n_actions: int, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None) -> None:
        super().__init__(n_actions, low=low, high=high, horizon=horizon)
        self._earned = np.zeros(self.n_actions)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each action is to be drawn next, shape (n_actions,)."""
        over = self.horizon or self.rounds + 1
        return _softmax(math.sqrt(8 * math.log(self.n_actions) / over) / (self.high - self.low) * self._earned)

    def regret_bound(self, rounds: int) -> float:
        """Return the bound of [CL06]_; with T known it is for T rounds, and fewer."""
        log = math.log(self.n_actions)
        if self.horizon is None:
            return (self.high - self.low) * (2 * math.sqrt(rounds * log / 2) + math.sqrt(log / 8))
        over = self.horizon if rounds <= self.horizon else math.inf
        return (self.high - self.low) * math.sqrt(over * log / 2)

    def _learn(self, draw: Draw, earned: NDArray[np.float64]) -> None:
        self._earned += earned


class AdaHedge(Learner):
    """Exponential weights with a rate that adapts to past losses; needs no range and no T.

    The rate falls with the *mixability gap*, which an easy sequence (one action stands out) does not
    let grow: then the play settles on that action, where `Hedge` stays cautious ([REGK14]_).
    """

    sees = "all"
    needs_range = False

    def __init__(self, n_actions: int, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None) -> None:
        super().__init__(n_actions, low=low, high=high, horizon=horizon)
        self._earned = np.zeros(self.n_actions)
        self._gap = 0.0  # the sum of mixability gaps
        self.spread = 0.0  # the largest that one round has shown

    @property
    def rate(self) -> float:
        """The learning rate of the next round, 1 / credits; inf: the best so far is followed."""
        return math.log(max(self.n_actions, 2)) / self._gap if self._gap > 0 else math.inf

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each action is to be drawn next, shape (n_actions,)."""
        if math.isinf(self.rate):
            best = self._earned == self._earned.max()
            return np.asarray(best / best.sum())
        return _softmax(self.rate * self._earned)

    def regret_bound(self, rounds: int) -> float:
        """Return the bound of [REGK14]_ for the spread seen so far."""
        log = math.log(self.n_actions)
        return self.spread * (math.sqrt(rounds * log) + 4 / 3 * log + 2)

    def _learn(self, draw: Draw, earned: NDArray[np.float64]) -> None:
        p, rate = self.probabilities, self.rate
        mean, best = float(p @ earned), float(earned[p > 0].max())
        if math.isinf(rate):
            mixed = best
        else:
            mixed = best + math.log(float(p @ np.exp(rate * np.minimum(earned - best, 0.0)))) / rate
            # An action of probability 0 in floating point is left out of `best`: it has no part in the mixture.
        self._gap += max(0.0, mixed - mean)
        self._earned += earned
        self.spread = max(self.spread, float(np.ptp(earned)))


class Exp3(Learner):
    r"""Exponential weights of estimated losses: only the own utility is seen, divided by its probability.

    With T known :math:`\eta = \sqrt{2 \ln n / (n T)}`, else :math:`\eta_t = \sqrt{\ln n / (n t)}`.
    """

    sees = "own"

    def __init__(self, n_actions: int, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None) -> None:
        super().__init__(n_actions, low=low, high=high, horizon=horizon)
        self._lost = np.zeros(self.n_actions)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each action is to be drawn next, shape (n_actions,)."""
        n, log = self.n_actions, math.log(self.n_actions)
        rate = (
            math.sqrt(log / (n * (self.rounds + 1))) if self.horizon is None else math.sqrt(2 * log / n / self.horizon)
        )
        return _softmax(-rate * self._lost)

    def regret_bound(self, rounds: int) -> float:
        """Return the bound of [BC12]_ on the expected regret; with T known it is for T rounds, and fewer."""
        n, scale = self.n_actions, self.high - self.low
        if self.horizon is None:
            return scale * 2 * math.sqrt(rounds * n * math.log(n))
        over = self.horizon if rounds <= self.horizon else math.inf
        return scale * math.sqrt(2 * over * n * math.log(n)) if n > 1 else 0.0

    def _learn(self, draw: Draw, earned: NDArray[np.float64]) -> None:
        loss = (self.high - float(earned)) / (self.high - self.low)
        self._lost[draw.action] += loss / draw.probability


class Ucb1(Learner):
    r"""The highest mean so far plus :math:`R \sqrt{2 \ln t / n_k}`; every action once, first. Ties are drawn."""

    sees = "own"

    def __init__(self, n_actions: int, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None) -> None:
        super().__init__(n_actions, low=low, high=high, horizon=horizon)
        self._earned = np.zeros(self.n_actions)
        self.taken = np.zeros(self.n_actions, dtype=np.int64)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """How likely each action is to be drawn next, shape (n_actions,): equal among the best."""
        index = np.full(self.n_actions, math.inf)
        tried = self.taken > 0
        if tried.all():
            means = self._earned / self.taken
            index = means + np.sqrt(2 * math.log(max(1, self.rounds)) / self.taken)
            best = index == index.max()
        else:
            best = ~tried
        return np.asarray(best / best.sum())

    def regret_bound(self, rounds: int) -> float:
        """Return inf: the theorem is about draws from fixed laws; see `pulls_bound`."""
        return math.inf

    def pulls_bound(self, rounds: int, gap: float) -> float:
        """Return how often an action whose mean is lower by ``gap`` (credits) is taken in expectation, at most."""
        share = gap / (self.high - self.low)
        return 8 * math.log(rounds) / share**2 + 1 + math.pi**2 / 3

    def _learn(self, draw: Draw, earned: NDArray[np.float64]) -> None:
        self._earned[draw.action] += (float(earned) - self.low) / (self.high - self.low)
        self.taken[draw.action] += 1


LEARNERS: dict[str, type[Learner]] = {"adahedge": AdaHedge, "exp3": Exp3, "hedge": Hedge, "ucb1": Ucb1}


def make_learner(
    name: str, n_actions: int, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None
) -> Learner:
    """Return a fresh learner by name (adahedge, exp3, hedge or ucb1), or raise UnknownNameError."""
    if name not in LEARNERS:
        raise UnknownNameError(f"learner {name!r} is unknown: expected one of {', '.join(LEARNERS)}")
    return LEARNERS[name](n_actions, low=low, high=high, horizon=horizon)


def _softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights proportional to exp(x), which add up to 1."""
    weights = np.exp(x - x.max())
    return np.asarray(weights / weights.sum())
