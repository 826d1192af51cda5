"""The plan that a false report selects, compared with that of the truth, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Signal
from marketsched.truthfulness.certificates.alternatives import Alternatives
from marketsched.truthfulness.certificates.regret import BestResponse

SHOWN = 3  # cases named in words


def words_of(options: Alternatives, plan: BestResponse) -> str:
    """Return a best response in words: the nodes declared, and the likeliest cases in which it starts otherwise."""
    law, nodes, needed = options.law, int(options.concurrencies[plan.width]), options.truth.concurrency
    starts, truthful = _starts(options, plan.columns), _starts(options, options.chosen)
    declared = f"declares {_nodes(nodes)}" + ("" if nodes == needed else f" instead of {needed}")
    weights = np.add.reduceat(law.probabilities, law.offsets[:-1]).tolist()
    cases = zip(law.group_arrivals.tolist(), law.group_signals, starts, truthful, weights, strict=True)
    changes = sorted(
        (-weight, f"{_case(a, o)}: {_start(new)} instead of {_start(old, short=True)}")
        for a, o, new, old, weight in cases
        if new != old and weight > 0
    )
    if not changes:
        return f"{declared}; the launch plan stays as it is"
    if len(changes) > 1 and all(new is None for new in starts):
        return f"{declared}; never runs"
    listed = "; ".join(words for _, words in changes[:SHOWN])
    rest = f"; and {len(changes) - SHOWN} cases more" if len(changes) > SHOWN else ""
    return f"{declared}; {listed}{rest}"


def _starts(options: Alternatives, columns: NDArray[np.int64]) -> list[int | None]:
    return [None if c == options.n_starts else options.first_start + c for c in columns.tolist()]


def _nodes(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"


def _case(arrival: int, signal: Signal) -> str:
    return f"arriving in round {arrival}" + ("" if signal is None else f" with signal {signal}")


def _start(start: int | None, *, short: bool = False) -> str:
    if start is None:
        return "never" if short else "does not run"
    return f"{start}" if short else f"starts in round {start}"
