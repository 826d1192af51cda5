"""A witness: the plan that a false report selects, and the report in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Signal
from marketsched.truthfulness.certificates.alternatives import Alternatives
from marketsched.truthfulness.certificates.regret import BestResponse

SHOWN = 3  # cases named in words

Starts = tuple[tuple[int, Signal, int | None], ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """The target selection of a false report, compared with the truth's.

    ``starts`` and ``truthful`` hold (arrival, signal, start or None) for every case of the true law;
    ``weights`` the probability of each case. ``gain`` in credits, expected.

    Examples
    --------
    >>> witness = Witness(2, 1, ((1, None, 2),), ((1, None, None),), (1.0,), 3.5)
    >>> print(witness)
    declares 2 nodes instead of 1; arriving in round 1: starts in round 2 instead of never
    """

    concurrency: int
    true_concurrency: int
    starts: Starts
    truthful: Starts
    weights: tuple[float, ...]
    gain: float

    @property
    def words(self) -> str:
        """The lie in words."""
        declared = f"declares {_nodes(self.concurrency)}"
        if self.concurrency != self.true_concurrency:
            declared += f" instead of {self.true_concurrency}"
        changes = [
            (-weight, f"{_case(a, o)}: {_start(new)} instead of {_start(old, short=True)}")
            for (a, o, new), (_, _, old), weight in zip(self.starts, self.truthful, self.weights, strict=True)
            if new != old and weight > 0
        ]
        if not changes:
            return f"{declared}; the launch plan stays as it is"
        if len(changes) > 1 and all(new is None for _, _, new in self.starts):
            return f"{declared}; never runs"
        changes.sort()
        listed = "; ".join(words for _, words in changes[:SHOWN])
        rest = f"; and {len(changes) - SHOWN} cases more" if len(changes) > SHOWN else ""
        return f"{declared}; {listed}{rest}"

    def __str__(self) -> str:
        return self.words


def witness_of(options: Alternatives, plan: BestResponse) -> Witness:
    """Return a best response as a witness."""
    law = options.law
    weights = np.add.reduceat(law.probabilities, law.offsets[:-1])
    return Witness(
        int(options.concurrencies[plan.width]),
        options.truth.concurrency,
        _starts(options, plan.columns),
        _starts(options, options.chosen),
        tuple(weights.tolist()),
        plan.gain,
    )


def _starts(options: Alternatives, columns: NDArray[np.int64]) -> Starts:
    law = options.law
    rounds = [None if c == options.n_starts else options.first_start + c for c in columns.tolist()]
    return tuple(zip(law.group_arrivals.tolist(), law.group_signals, rounds, strict=True))


def _nodes(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"


def _case(arrival: int, signal: Signal) -> str:
    return f"arriving in round {arrival}" + ("" if signal is None else f" with signal {signal}")


def _start(start: int | None, *, short: bool = False) -> str:
    if start is None:
        return "never" if short else "does not run"
    return f"{start}" if short else f"starts in round {start}"
