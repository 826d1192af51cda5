"""Ways to pack weighted intervals into bundles, in exact arithmetic and word by word: references and baselines."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from marketsched.relaxed_lp.outcomes import Outcomes
from marketsched.relaxed_lp.unit_allocation import Members, UnitAllocation, fractional_unit_allocation

W6 = ([1, 3, 4, 4], [4, 5, 4, 6], [1, 1, 1, 1], [0.5, 0.5, 0.75, 0.75], [4, 3, 2, 1])


def w6():
    return fractional_unit_allocation(*W6, max_concurrency=1, max_duration=4)


def random_family(rng, n, rounds, widest, longest, weights):
    """Return arrays of n outcomes; ``weights`` draws theirs."""
    duration = rng.integers(1, longest + 1, n)
    first = rng.integers(1, rounds - duration + 2)
    return first, first + duration - 1, rng.integers(1, widest + 1, n), weights(n), rng.integers(0, 9, n).astype(float)


@dataclass(frozen=True)
class Outcome:
    number: int
    first: int
    last: int
    width: int
    weight: Fraction
    value: Fraction

    def covers(self, t):
        return self.first <= t <= self.last


@dataclass
class Bundle:
    shares: dict[int, Fraction] = field(default_factory=dict)  # of each outcome, by number
    rounds: set[int] = field(default_factory=set)  # of its members

    @property
    def first(self):
        return min(self.rounds)

    @property
    def last(self):
        return max(self.rounds)


def family_of(first, last, width, weight, value):
    """Return outcomes of positive weight; floats are taken exactly as they are."""
    rows = zip(first, last, width, weight, value, strict=True)
    return [
        Outcome(i, int(f), int(e), int(c), Fraction(x), Fraction(v)) for i, (f, e, c, x, v) in enumerate(rows) if x > 0
    ]


def height_of(max_duration):
    """Return H = ceil(log2 D_max), without logarithms."""
    return min(h for h in range(64) if 2**h >= max_duration)


def centre_of(outcome, height):
    """Return the round divisible by the highest power of two, the power capped at 2^height."""

    def power(t):
        return max(h for h in range(height + 1) if t % 2**h == 0)

    rounds = range(outcome.first, outcome.last + 1)
    best = max(power(t) for t in rounds)
    (centre,) = (t for t in rounds if power(t) == best)  # it is unique
    return centre


def filled(outcomes, unit):
    """Fill bundles of ``unit`` nodes one after the other, in this order; split who overflows."""
    bundles, room = [], Fraction(0)
    for outcome in outcomes:
        left = outcome.width * outcome.weight
        while left > 0:
            if room == 0:
                bundles.append(Bundle())
                room = Fraction(unit)
            part = min(left, room)
            bundles[-1].shares[outcome.number] = part / (outcome.width * outcome.weight)
            bundles[-1].rounds |= {outcome.first, outcome.last}
            left, room = left - part, room - part
    return bundles


def star_packing(family, unit, max_duration):
    """Return the bundles of construction STAR, as it is written down."""
    height = height_of(max_duration)
    stars = defaultdict(list)
    for outcome in family:
        stars[centre_of(outcome, height)].append(outcome)
    bundles = []
    for centre in sorted(stars):
        star = stars[centre]

        def rank(w, star=star, centre=centre):
            left = sum(m.width * m.weight for m in star if centre - m.first >= centre - w.first)
            right = sum(m.width * m.weight for m in star if m.last - centre >= w.last - centre)
            return min(left, right)

        bundles += filled(sorted(star, key=lambda w: (rank(w), w.first, w.last, w.number)), unit)
    return bundles


def window_packing(family, unit):
    """Return class windows: by length class [2^g, 2^(g+1)), consecutive starts fill a bundle."""
    classes = defaultdict(list)
    for outcome in family:
        classes[(outcome.last - outcome.first + 1).bit_length()].append(outcome)
    by_start = (sorted(classes[g], key=lambda w: (w.first, w.last, w.number)) for g in sorted(classes))
    return [bundle for outcomes in by_start for bundle in filled(outcomes, unit)]


def star_loads(family, unit, max_duration, t):
    """Return W_p(t) of every star p that touches round t, in bundles."""
    height = height_of(max_duration)
    loads = defaultdict(Fraction)
    for outcome in family:
        if outcome.covers(t):
            loads[centre_of(outcome, height)] += outcome.width * outcome.weight / Fraction(unit)
    return loads


def check_theorem(family, unit, max_duration, overlap):
    """Assert N(t) <= sum_p ceil(2 W_p(t)) <= 2 W(t) + H + 2 for every round of ``overlap``, exactly."""
    for t, bundles in enumerate(overlap, start=1):
        loads = star_loads(family, unit, max_duration, t).values()
        in_stars = sum(math.ceil(2 * load) for load in loads)
        assert bundles <= in_stars <= 2 * sum(loads) + height_of(max_duration) + 2, t


def as_allocation(bundles, family, unit):
    """Return a packing as the product's type, so that its checker can look at it."""
    by_number = {outcome.number: outcome for outcome in family}
    columns = [
        [getattr(by_number[i], name) if i in by_number else default for i in range(max(by_number) + 1)]
        for name, default in (("first", 1), ("last", 1), ("width", 1), ("weight", 0.0), ("value", 0.0))
    ]
    outcomes = Outcomes(*(np.array(c, dtype=np.int64) for c in columns[:3]), *(np.array(c, float) for c in columns[3:]))
    members = [(k, i, float(share)) for k, bundle in enumerate(bundles) for i, share in bundle.shares.items()]
    bundle, outcome, share = (np.array(column) for column in zip(*members, strict=True))
    amount = outcomes.weight[outcome] * share
    return UnitAllocation(
        first=np.array([b.first for b in bundles]),
        last=np.array([b.last for b in bundles]),
        value=np.bincount(bundle, outcomes.value[outcome] * amount),
        weight=np.bincount(bundle, outcomes.width[outcome] * amount),
        members=Members(bundle, outcome, share),
        outcomes=outcomes,
        max_concurrency=unit,
    )
