"""A check that prices are the same for every report: certificates of menus assume it.

A planner requests prices from a relaxed algorithm, for as many starts and durations as the report can use. An
algorithm that makes its prices from these sizes lets a report move the prices it faces, and a certificate that reads
one table would be about another market. So prices are requested for sizes that do not depend on a report (all starts
before birth + S, all durations), and compared with the prices for reports of other deadlines, arrivals and durations.
The slot prices of the library need no look: there a price is the sum over the rounds of a run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.posted.exponential import SlotPricing
from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.mechanisms.posted.relaxed import RelaxedAlgorithm
from marketsched.mechanisms.sow import StatementOfWork

ROUNDING = 1e-9  # of V_max: two ways of adding up the same prices
SPREAD = 12  # numbers of starts that are asked about, beside those near the truth's own

Size = tuple[int, int, int]  # first start, starts, durations


def require_fixed_prices(view: Inspection, truth: StatementOfWork) -> None:
    """Raise InvalidParameterError unless every report near the truth is given the same prices now.

    No price, nor the longest duration on sale, may change with the number of requested starts or durations.
    """
    if _are_slot_prices(view.relaxed):
        return
    limits, now = view.limits, view.now
    tolerance = ROUNDING * max(1.0, view.max_value)
    for width in range(truth.concurrency, limits.max_concurrency + 1):
        prices, longest = view.prices(width, now, limits.max_delay, limits.max_duration)
        for first, n_starts, n_durations in _sizes(view, truth, own=width == truth.concurrency):
            rows = slice(first - now, first - now + n_starts)
            part, sold = view.prices(width, first, n_starts, n_durations)
            whole, on_sale = prices[rows, :n_durations], np.minimum(longest[rows], n_durations)
            on_offer = sold == on_sale
            if on_offer.all() and (part == whole).all():
                continue  # as it mostly is, to the last bit: nothing else is asked
            same = np.isclose(part, whole, rtol=0.0, atol=tolerance, equal_nan=True)
            if same.all() and on_offer.all():
                continue
            row = int(np.argmin(same.all(axis=1) & on_offer))
            column = int(np.argmin(same[row]))
            raise InvalidParameterError(
                f"{type(view.relaxed).__name__}: its prices depend on the report: {width} nodes for {column + 1} "
                f"rounds from round {first + row} on cost {part[row, column]:g} where {n_starts} starts and "
                f"{n_durations} durations are asked for, and {whole[row, column]:g} where {limits.max_delay} and "
                f"{limits.max_duration} are: expected one table for all; marketsched.audit takes any mechanism"
            )


def _are_slot_prices(relaxed: RelaxedAlgorithm) -> bool:
    """Tell whether prices are made by `SlotPricing` as it stands, where no size of a table changes a price."""
    return type(relaxed) is SlotPricing and getattr(relaxed.price_table, "__func__", None) is SlotPricing.price_table


def _sizes(view: Inspection, truth: StatementOfWork, *, own: bool) -> Iterator[Size]:
    """Return what the truth asks for, and what other reports would; ``own``: more of them."""
    limits, now, law = view.limits, view.now, truth.law
    first, longest = int(law.arrivals[0]), int(law.durations.max())
    room = limits.max_delay - (first - now)
    if room < 1:
        return
    last = last_useful_completion(truth, limits.max_delay, limits.horizon)
    asked = last - int(law.durations.min()) - first + 1
    counts = {1, asked, room}
    if own:
        counts |= {asked - 1, asked + 1, *np.linspace(1, room, SPREAD).round().astype(int).tolist()}
    for n_starts in sorted(n for n in counts if 1 <= n <= room):
        yield first, n_starts, longest
    yield first, min(max(asked, 1), room), limits.max_duration
    yield first, min(max(asked, 1), room), 1
    if own and first > now:
        yield now, limits.max_delay, longest
