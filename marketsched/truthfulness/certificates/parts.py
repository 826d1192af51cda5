r"""Where a possible gain comes from: the bound of a certificate, split by replacing one ingredient at a time.

All utilities here are the true ones, under the failure probabilities found (exact, or the shares on the
fresh paths). From the truthful plan to the best response the ingredients change in this order:

1. *threshold*: plan the truth with the same estimates, none of them zeroed;
2. *oracle error*: plan it with the probabilities found instead of the estimates;
3. *ties*: the best start among those on sale to the truth, without tolerance or rule for ties;
4. *not on sale*: also starts that only a false duration opens (the hard cap, or bundles);
5. *durations hidden*: also more nodes than needed, at prices made monotone in the concurrency (G1);
6. *not monotone*: at the prices as they are;
7. *band*: from the largest gain under the probabilities found to the bound itself.

Each part is the change in the truthful owner's utility, or in the best one, that its step causes; the
sum telescopes to the bound. Parts 3 to 7 are never negative. Parts 1 and 2 can be, where two wrongs made
a right, but not their sum, beyond the tolerance of ties. With fresh paths, part 2 also holds the noise of
the paths themselves, since a best plan is chosen on them: it is an estimate, the bound is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.truthfulness.certificates.alternatives import Alternatives
from marketsched.truthfulness.certificates.regret import best_responses


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an upper bound of the regret, in credits; they add up to it.

    Examples
    --------
    >>> parts = Parts(0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 1.0)
    >>> parts.total
    1.75
    """

    threshold: float
    oracle_error: float
    ties: float
    not_on_sale: float
    hidden_durations: float
    not_monotone: float
    band: float

    @property
    def total(self) -> float:
        """The bound."""
        return float(sum(asdict(self).values()))


def split(
    view: Inspection, options: Alternatives, failures: NDArray[np.float64], utilities: NDArray[np.float64], bound: float
) -> Parts:
    """Split ``bound``.

    Parameters
    ----------
    view : Inspection
        The moment.
    options : Alternatives
        What reports can lead to.
    failures : ndarray, shape (n_widths, n_durations, n_starts)
        The failure probabilities found.
    utilities : ndarray, shape (n_widths, n_cases, n_starts + 1)
        `Alternatives.utilities` under them.
    bound : float
        Upper bound of the regret, credits.
    """
    cases = np.arange(options.chosen.size)

    def of_plan(starts: NDArray[np.int64]) -> float:
        return float(utilities[0, cases, options.columns_of(starts)].sum())

    truthful = float(options.truthful(utilities).sum())
    unzeroed = of_plan(view.plan(options.truth, threshold=0.0).starts) if view.threshold > 0 else truthful
    found = of_plan(view.plan(options.truth, failures=_as_table(view, options, failures), threshold=0.0).starts)
    own = options._replace(open=options.open[:1])
    on_sale = own.open & options.on_sale
    on_sale[0, cases, options.chosen] = True
    best_on_sale = truthful + best_responses(own._replace(open=on_sale), utilities[:1])[0].gain
    best_own = truthful + best_responses(own, utilities[:1])[0].gain
    monotone = best = best_own
    if options.concurrencies.size > 1:
        best = truthful + best_responses(options, utilities)[0].gain
        lowered = options.utilities(failures, np.minimum.accumulate(options.net, axis=0))
        monotone = min(best, truthful + best_responses(options, lowered)[0].gain)
    return Parts(
        threshold=unzeroed - truthful,
        oracle_error=found - unzeroed,
        ties=best_on_sale - found,
        not_on_sale=best_own - best_on_sale,
        hidden_durations=monotone - best_own,
        not_monotone=best - monotone,
        band=bound - (best - truthful),
    )


def _as_table(view: Inspection, options: Alternatives, failures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the truth's failure probabilities as a table of starts from now on; durations it lacks are 0."""
    ahead = options.first_start - view.now
    table = np.zeros((ahead + options.n_starts, int(options.durations[-1])))
    table[ahead:, options.durations - 1] = failures[0].T
    return table
