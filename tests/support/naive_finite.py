"""Finite mechanisms in plain Python: random ones, and every figure of an audit by loops over all profiles."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np

from marketsched.mechanisms.finite import FiniteMechanism


def random_tables(rng, numbers, *, lotteries, most_owners=3):
    """Return shape, utilities, probabilities and payments of a random mechanism, as nested lists of ``numbers()``."""
    shape = tuple(int(m) for m in rng.integers(1, 4, size=rng.integers(1, most_owners + 1)))
    n_outcomes = int(rng.integers(1, 4))
    utilities = [[[numbers() for _ in range(n_outcomes)] for _ in range(m)] for m in shape]
    profiles = list(product(*map(range, shape)))
    choice = {p: int(rng.integers(n_outcomes)) for p in profiles}
    if lotteries:
        chances = {p: _chances(rng, n_outcomes) for p in profiles}
    else:
        chances = {p: [Fraction(int(k == choice[p])) for k in range(n_outcomes)] for p in profiles}
    payments = {p: [numbers() for _ in shape] for p in profiles}
    return shape, utilities, chances, payments


def _chances(rng, size):
    parts = rng.integers(1, 6, size=size)
    return [Fraction(int(part), int(parts.sum())) for part in parts]


def random_priors(rng, shape):
    """Return marginals of independent owners, and a joint prior with some profiles of probability 0."""
    marginals = [_chances(rng, m) for m in shape]
    parts = rng.integers(0, 4, size=shape)
    parts.flat[0] = 1
    joint = np.array([Fraction(int(x), int(parts.sum())) for x in parts.flat], dtype=object).reshape(shape)
    return marginals, joint


def mechanism_of(shape, utilities, chances, payments, *, lotteries):
    """Return the mechanism of such tables; types are 10, 11, ..."""
    profiles = list(product(*map(range, shape)))
    outcome = [chances[p] if lotteries else chances[p].index(1) for p in profiles]
    types = [range(10, 10 + m) for m in shape]
    return FiniteMechanism(types, outcome, [payments[p] for p in profiles], utilities=utilities)


def utility(tables, owner, true, reports):
    """Return what an owner of a type gets at a profile of reports."""
    _, utilities, chances, payments = tables
    value = sum(x * u for x, u in zip(chances[reports], utilities[owner][true], strict=True))
    return value - payments[reports][owner]


def changed(profile, owner, report):
    """Return the profile with another report of one owner."""
    return (*profile[:owner], report, *profile[owner + 1 :])


def audited(tables, chance):
    """Return all figures of an audit by name; ``chance``: a function from profile to probability."""
    shape, utilities, _, payments = tables
    profiles, owners = list(product(*map(range, shape))), range(len(shape))
    gains, expected, interim = [0], [0], []
    for i in owners:
        for true in range(shape[i]):
            here = [p for p in profiles if p[i] == true]
            mass = sum(chance(p) for p in here)
            if mass:
                interim.append(sum(chance(p) * utility(tables, i, true, p) for p in here) / mass)
            for lie in range(shape[i]):
                each = [utility(tables, i, true, changed(p, i, lie)) - utility(tables, i, true, p) for p in here]
                gains += each
                if mass:
                    expected.append(sum(chance(p) * g for p, g in zip(here, each, strict=True)) / mass)
    total, both = [0], [0]
    for i, j in combinations(owners, 2):
        for p, r, s in product(profiles, range(shape[i]), range(shape[j])):
            lie = changed(changed(p, i, r), j, s)
            one, other = (utility(tables, k, p[k], lie) - utility(tables, k, p[k], p) for k in (i, j))
            total.append(one + other)
            both.append(min(one, other))
    revenue = {p: sum(payments[p]) for p in profiles}
    welfare = {p: sum(utility(tables, i, p[i], p) + payments[p][i] for i in owners) for p in profiles}
    outcomes = range(len(utilities[0][0]))
    best = {p: max(sum(utilities[i][p[i]][k] for i in owners) for k in outcomes) for p in profiles}
    ratios = [welfare[p] / Fraction(best[p]) for p in profiles if best[p] > 0]
    return {
        "dominant_gain": max(gains),
        "bayesian_gain": max(expected),
        "worst_utility": min(utility(tables, i, p[i], p) for p in profiles for i in owners),
        "worst_interim_utility": min(interim),
        "least_revenue": min(revenue.values()),
        "most_revenue": max(revenue.values()),
        "expected_revenue": sum(chance(p) * revenue[p] for p in profiles),
        "worst_loss": max(best[p] - welfare[p] for p in profiles),
        "worst_ratio": min(ratios) if ratios else None,
        "expected_loss": sum(chance(p) * (best[p] - welfare[p]) for p in profiles),
        "expected_welfare": sum(chance(p) * welfare[p] for p in profiles),
        "best_expected_welfare": sum(chance(p) * best[p] for p in profiles),
        "pair_gain": max(total) if len(shape) > 1 else None,
        "both_gain": max(both) if len(shape) > 1 else None,
    }


def figures(audit):
    """Return the same figures of an audit."""
    read = audit.to_dict()
    for name in ("worst_utility", "worst_interim_utility"):
        read[name] = read[name].utility
    return {name: value for name, value in read.items() if name in NAMES}


NAMES = (
    "dominant_gain", "bayesian_gain", "worst_utility", "worst_interim_utility", "least_revenue", "most_revenue",
    "expected_revenue", "worst_loss", "worst_ratio", "expected_loss", "expected_welfare", "best_expected_welfare",
    "pair_gain", "both_gain",
)  # fmt: skip
