r"""Repeated play of learning owners, and how far it is from an equilibrium.

Owners play a :class:`~marketsched.study.learning.repeated_market.RepeatedMarket` episode by episode, each with a rule
of its own. What comes out are tables, and the *average gains*: for owner :math:`i` and report
:math:`k` of the menu

.. math:: g_{ik} = \frac1N \sum_e \left[ u_i(k, a_{-i}^e) - u_i(a^e) \right],

what always reporting :math:`k` would have earned more per episode, the others playing as they did. The
empirical distribution of play is an :math:`\varepsilon`-coarse correlated equilibrium (over the menu)
exactly if no :math:`g_{ik}` exceeds :math:`\varepsilon`, so its distance from one is
:math:`\max(0, \max_{ik} g_{ik})`.

Randomness comes in streams, one per purpose: the days, and one per owner for its choices. Runs with
the same seed see the same days, under every mechanism and every rule of the owners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Seed, Whole, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.study.learning.learning_market import LearningMarket
from marketsched.study.learning.learning_owner import Rule
from marketsched.study.learning.repeated_market import RepeatedMarket

Progress = Callable[[int, int], None]  # episodes played, episodes in all


@dataclass(frozen=True, eq=False)
class LearningRun:
    """Tables of one run; money in credits, episodes count from 1.

    Attributes
    ----------
    plays : DataFrame
        One row per episode and owner: ``episode``; ``owner``; ``rule``; ``choice`` (name in the menu, or
        what the strategy is); ``factor`` (of the value; NaN for other lies); ``truth_probability``
        (how likely the owner was to draw the truth); ``utility``.
    episodes : DataFrame
        One row per episode: ``episode``; ``day``; ``welfare``; ``revenue``; ``truth_share`` (mean of
        ``truth_probability``); ``factor`` (mean over owners that scale values); and, missing in
        episodes in which they were not looked at, ``truthful_welfare`` (had all told the truth on that
        day), ``bound`` and ``bound_low`` (between which the best schedule in hindsight lies).
    gains : ndarray, shape (n_measured, n_owners, n_actions)
        What each report of the menu would have earned more than what was played.
    measured : ndarray of int, shape (n_measured,)
        Episodes of ``gains``.
    owners, reports : tuple of str
        Owners, and names of the menu.
    episodes_planned : int
        The requested number; fewer were played if the run was interrupted.

    Examples
    --------
    >>> from marketsched import contested_market, learn
    >>> played = learn(contested_market("pay-as-bid", n_owners=3, capacity=1), episodes=5, seed=1)
    >>> len(played.plays), played.gains.shape
    (15, (5, 3, 5))
    """

    plays: pd.DataFrame
    episodes: pd.DataFrame
    gains: NDArray[np.float64] = field(repr=False)
    measured: NDArray[np.int64] = field(repr=False)
    owners: tuple[str, ...]
    reports: tuple[str, ...]
    episodes_planned: int

    def average_gains(self, first: int = 1) -> pd.DataFrame:
        """Return :math:`g_{ik}` over measured episodes from ``first`` on: owner, report, gain, episodes.

        InvalidParameterError if none of them was measured.
        """
        chosen = self.measured >= first
        if not chosen.any():
            raise InvalidParameterError(
                f"first = {first!r}: expected an episode with a measured one from there on, "
                f"and the last is {self.measured.max(initial=0)}"
            )
        mean = self.gains[chosen].mean(axis=0)
        rows = [
            (owner, report, float(mean[i, k]), int(chosen.sum()))
            for i, owner in enumerate(self.owners)
            for k, report in enumerate(self.reports)
        ]
        return pd.DataFrame(rows, columns=["owner", "report", "gain", "episodes"])

    def equilibrium_distance(self, first: int = 1) -> float:
        """Return the distance of play from episode ``first`` on to a coarse correlated equilibrium, credits.

        Days differ, so of N measured episodes the largest of many averages is too large by an amount
        that falls with the root of N.
        """
        return max(0.0, float(self.average_gains(first)["gain"].max()))


@legal
def learn(
    market: RepeatedMarket,
    rules: Rule | Mapping[str, Rule] | Sequence[Rule] = "adahedge",
    *,
    episodes: Count = 500,
    seed: Seed = 0,
    measure_every: Count = 1,
    bound_every: int | None = 10,
    known_horizon: bool = False,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> LearningRun:
    """Play a repeated market: step a `LearningMarket`, a Mesa model whose agents are the owners, to the end.

    Parameters
    ----------
    market : RepeatedMarket
        The market to play.
    rules : rule, mapping of owner to rule, or sequence of rules in the order of owners
        How owners report: "truthful", "best-response", the name of a learner (adahedge, hedge, exp3,
        ucb), a Strategy, or a function of a Generator that returns a `Learning` or `BestResponding`
        owner. In a mapping, owners that are not named tell the truth.
    episodes : int
        How many.
    seed : int
        Root of all streams.
    measure_every : int
        Counterfactual gains of all owners are measured in every so-manieth episode.
    bound_every : int, optional
        So are the bound and the welfare of truthful reports; None: never.
    known_horizon : bool
        Tell learners how many episodes there will be.
    progress : function of (int, int), optional
        Called after each episode.
    keep_interrupted : bool
        On Ctrl-C return the episodes played so far (at least one) instead of raising.

    Raises
    ------
    InvalidParameterError
        If rules and owners do not match.
    TooLargeError
        If the records of all episodes do not fit into memory.
    UnknownNameError
        If there is no such rule.
    InvalidReportError, MechanismFault
        If a report is refused, or the mechanism at fault.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> played = learn(contested_market("pay-as-bid", n_owners=3, capacity=1), "ucb1", episodes=5, seed=1)
    >>> played.owners
    ('owner-1', 'owner-2', 'owner-3')
    """
    if not isinstance(market, RepeatedMarket):
        raise InvalidParameterError(
            f"market = {market!r}: expected a RepeatedMarket, as contested_market() and repeated_scenario(...) return"
        )
    if bound_every is not None:
        bound_every = Whole(1).check("bound_every", bound_every)
    check_memory(
        f"what {len(market.owners)} owners did in {episodes} episodes",
        episodes * len(market.owners) * (400.0 + 16.0 * len(market.menu)),  # rows of tables, and gains of all reports
        "fewer owners or episodes",
    )
    model = LearningMarket(
        market,
        rules,
        episodes=episodes,
        seed=seed,
        measure_every=measure_every,
        bound_every=bound_every,
        known_horizon=known_horizon,
    )
    try:
        while model.running:
            model.step()
            if progress is not None:
                progress(model.episode, episodes)
    except KeyboardInterrupt:
        if not keep_interrupted or not model.episode:
            raise
    gains, measured = model.gains()
    return LearningRun(model.plays(), model.episodes(), gains, measured, market.owners, market.menu.names, episodes)
