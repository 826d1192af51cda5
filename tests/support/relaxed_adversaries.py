"""Adversaries of the relaxed problem, and a ledger of what Algorithm 3 makes of them.

An adversary sees everything committed so far and names the next statement of work. It may also switch a
job: replace its plan by any other in which every launch is worth its price. Benchmarks are then taken over
J', the jobs that were not switched. Sums are done here from the definitions, not with the package's own.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.limits import MarketLimits, last_useful_completion
from marketsched.mechanisms.posted.guarantees import price_ends, relaxed_ratio, smallest_supply
from marketsched.mechanisms.posted.launch_plan import Choice, Terms, choose_starts
from marketsched.mechanisms.posted.run_certificate import WelfareLedger

NEVER_ENDS = 10**6  # as a horizon: the relaxed problem charges rounds after T like any other
SLACK = 1e-7  # credits and nodes: rounding of sums of some hundred terms


@dataclass(frozen=True)
class Size:
    """c_max, D_max, V_max, S, T; kappa is for hidden durations."""

    c: int = 2
    d: int = 4
    v: float = 10.0
    delay: int = 12
    horizon: int = 30
    kappa: float = 1.0

    @property
    def ends(self):
        return price_ends(self.c, self.d, self.v, kappa=self.kappa)

    @property
    def alpha(self):
        """(21), in its kappa form."""
        return relaxed_ratio(*self.ends)

    @property
    def least_supply(self):
        """The smallest whole C' with C' >= c_max (1 + log2 R)."""
        return math.ceil(smallest_supply(self.c, *self.ends))


class RelaxedRun:
    """Algorithm 3 facing an adversary: plans (10), switched plans, and what they add up to."""

    def __init__(self, size, supply, pricing):
        self.size = size
        limits = MarketLimits(math.ceil(supply), size.horizon, size.c, size.d, size.v, size.delay)
        self.supply = supply
        self.prices = pricing.open(supply, limits)
        self.n_slots = size.horizon + 2 * size.d + 2
        self.first_prices = self.prices.slot_prices(0, self.n_slots)
        self.ledger = WelfareLedger()
        self.followers = []  # J'
        self.value = self.revenue = self.followers_utility = 0.0
        self.peak = 0.0  # largest Y_t ever, rounds after T included

    def _terms(self, sow):
        """Return values and prices of every start of a report, as `choose_starts` reads them."""
        law = sow.law
        first, longest = int(law.arrivals[0]), int(law.durations.max())
        last = last_useful_completion(sow, self.size.delay, self.size.horizon)
        n = max(0, last - int(law.durations.min()) - first + 1)
        values = sow.value.table(first, n + longest)
        values[max(0, last + 1 - first) :] = 0.0
        return first, values, *self.prices.price_table(sow.concurrency, first, n, longest)

    def _group_gain(self, sow, group, start, terms):
        """Return expected value and payment of one launch, given its case, times the case's probability."""
        first, values, prices, _ = terms
        value = payment = 0.0
        for k in range(sow.law.offsets[group], sow.law.offsets[group + 1]):
            weight, d = float(sow.law.probabilities[k]), int(sow.law.durations[k])
            value += weight * values[start + d - first]
            payment += weight * prices[start - first, d - 1]
        return value, payment

    def submit(self, sow, switch=None):
        """Plan by (10), or by ``switch`` (a function of the legal launches of a case); commit; check supply."""
        law, terms = sow.law, self._terms(sow)
        first, values, prices, on_sale = terms
        choice = choose_starts(
            law,
            Terms(values, prices, on_sale, np.zeros(prices.shape)),
            now=first,
            first_start=first,
            horizon=NEVER_ENDS,
            threshold=0.0,
            tolerance=1e-12,
        )
        starts = choice.starts if switch is None else self._switched(sow, terms, switch)
        gains = [self._group_gain(sow, g, s, terms) for g, s in enumerate(starts.tolist()) if s >= 0]
        value, payment = (sum(column) for column in zip(*gains, strict=True)) if gains else (0.0, 0.0)
        self.value, self.revenue = self.value + value, self.revenue + payment
        if switch is None:
            self.followers.append(sow)
            self.followers_utility += value - payment
        last = last_useful_completion(sow, self.size.delay, self.size.horizon)
        noted = choice if switch is None else Choice(starts, 0.0, value - payment, False, False, choice.estimates)
        self.ledger.enter(sow, sow.value(last) if last > 0 else 0.0, int(law.durations.max()), noted)
        self.prices.commit(sow.concurrency, np.repeat(starts, np.diff(law.offsets)), law.durations, law.probabilities)
        self.peak = max(self.peak, float(self.prices.usage(0, self.n_slots).max()))

    def _switched(self, sow, terms, switch):
        """Return a plan whose every launch is worth its price; a launch never starts where it is off sale."""
        law, starts = sow.law, []
        first, _, prices, on_sale = terms
        for g, arrival in enumerate(law.group_arrivals.tolist()):
            durations = law.durations[law.offsets[g] : law.offsets[g + 1]]
            legal = {}
            for s in range(arrival, first + len(prices)):
                value, payment = self._group_gain(sow, g, s, terms)
                if value > 0 and value >= payment and durations.max() <= on_sale[s - first]:
                    legal[s] = value - payment
            starts.append(switch(legal))
        return np.array(starts, dtype=np.int64)

    @property
    def certificate(self):
        """Twice the right side of (22), from the definitions."""
        last = self.prices.slot_prices(0, self.n_slots)
        return 2 * (self.followers_utility + self.supply * float((last - self.first_prices).sum()))


# --- switched plans -------------------------------------------------------------------------------


def at_random(rng):
    """Any legal launch, or none."""
    return lambda legal: int(rng.choice([-1, *legal]))


def spiteful(rng):
    """The legal launch that leaves least to its owner: as much price as the value bears."""
    return lambda legal: min(legal, key=legal.get, default=-1)


# --- adversaries: (run, rng, share of the sequence so far) -> the next statement of work -----------


def _curve(rng, value, birth, first_end, size):
    """A value curve of any kind that is worth ``value`` at its first possible completion."""
    last = min(first_end + int(rng.integers(0, 6)), birth + size.delay - 1)
    kind = rng.integers(3)
    if kind == 0 or last <= first_end:
        return DeadlineValue(value, max(last, first_end))
    if kind == 1:  # falls, and ends before it leaves [1, V_max]
        return LinearValue(value, first_end, (value - 1) / (last - first_end), last)
    return TableValue({f: value if f == first_end else max(1.0, value / 2) for f in range(first_end, last + 1)})


def _law(rng, birth, size, d, hidden):
    """One to three cases of arrival and duration; some mass may be missing."""
    n = int(rng.integers(1, 4))
    mass = 1.0 if rng.random() < 0.7 else 0.8
    if not hidden:
        arrivals = birth + rng.integers(0, 3, n)
        durations = np.clip(d + rng.integers(-1, 2, n), 1, size.d)
        weights = mass * rng.dirichlet(np.ones(n))
        return [(int(a), int(k), float(w)) for a, k, w in zip(arrivals, durations, weights, strict=True)]
    rows = []  # for each arrival its shortest and its longest duration have at least kappa of its mass
    for share, arrival in zip(mass * rng.dirichlet(np.ones(n)), birth + np.arange(n), strict=True):
        short, long = int(rng.integers(1, d + 1)), int(rng.integers(d, size.d + 1))
        p = float(rng.uniform(size.kappa, 1 - size.kappa))
        rows += [(int(arrival), short, float(share) * p, None), (int(arrival), long, float(share) * (1 - p), None)]
    return rows


def _sow(rng, size, birth, c, d, value, hidden, law=None):
    rows = _law(rng, birth, size, d, hidden) if law is None else law
    first_end = min(a + k for a, k, *_ in rows)
    return StatementOfWork(birth, c, _curve(rng, float(np.clip(value, 1, size.v)), birth, first_end, size), rows)


def _of_density(run, rng, density, birth, hidden):
    """A job of about this value per node-round: cheap ones are wide and long, dear ones narrow and short."""
    size = run.size
    area = np.clip(rng.uniform(1, size.v) / density, 1, size.c * size.d)
    c = int(np.clip(round(area / size.d), 1, size.c))
    d = int(np.clip(round(area / c), 1, size.d))
    certain = rng.random() < 0.5 and not hidden
    law = [(birth, d, 1.0)] if certain else None
    return _sow(rng, size, birth, c, d, density * c * d, hidden, law)


def _densities(size):
    """The lowest and the highest value per node-round there can be."""
    return 1 / (size.c * size.d), size.v


def rising(run, rng, share, hidden=False):
    """From the lowest value per node-round to the highest, all for the same few rounds."""
    low, high = _densities(run.size)
    return _of_density(run, rng, low * (high / low) ** share, 1 + int(3 * share), hidden)


def falling(run, rng, share, hidden=False):
    """From the highest value per node-round to the lowest, all for the same few rounds."""
    low, high = _densities(run.size)
    return _of_density(run, rng, high * (low / high) ** share, 1 + int(3 * share), hidden)


def geometric(run, rng, share, hidden=False):
    """Values spread evenly in ratio over [1, V_max], any size, born all over the horizon."""
    size = run.size
    birth = 1 + int(share * (size.horizon - size.delay - size.d))
    c, d = int(rng.integers(1, size.c + 1)), int(rng.integers(1, size.d + 1))
    return _sow(rng, size, birth, c, d, size.v ** rng.random(), hidden)


def undercutting(run, rng, share, hidden=False):
    """Each job is worth a hair more than what it costs; once that is V_max, a hair less."""
    size, birth = run.size, 1
    width = int(rng.integers(1, size.c + 1))
    d = int(rng.integers(1, size.d + 1))
    law = [(1, d, 1.0)] if not hidden else [(1, 1, 0.5, None), (1, d, 0.5, None)]
    table, _ = run.prices.price_table(width, 1, 1, size.d)
    price = table[0, d - 1] if not hidden else (table[0, 0] + table[0, d - 1]) / 2
    value = float(np.clip(price * (1.001 if share < 0.6 else 0.999), 1, size.v))
    return StatementOfWork(birth, width, DeadlineValue(value, 1 + d), law)


def mixed(run, rng, share, hidden=False):
    """Rising, falling and random densities in turn, born all over the horizon."""
    size = run.size
    low, high = _densities(size)
    birth = 1 + int(share * (size.horizon - size.delay - size.d))
    return _of_density(run, rng, low * (high / low) ** rng.choice([share, 1 - share, rng.random()]), birth, hidden)


ADVERSARIES = {f.__name__: f for f in (rising, falling, geometric, undercutting, mixed)}


def play(adversary, size, supply, pricing, rng, *, n_jobs, switch=None, switched=0.2, hidden=False):
    """Let an adversary submit ``n_jobs``; a share ``switched`` of them follows ``switch`` if there is one."""
    run = RelaxedRun(size, supply, pricing)
    for i in range(n_jobs):
        sow = adversary(run, rng, i / max(1, n_jobs - 1), hidden)
        moved = switch is not None and rng.random() < switched
        run.submit(sow, switch(rng) if moved else None)
    return run


# --- the benchmark, once more ---------------------------------------------------------------------


def linear_optimum(sows, supply, size, *, plans=False):
    """Solve (11), or with ``plans`` (12), written out start by start for SciPy."""
    values, caps, slots, columns, usage, owner = [], [], [], [], [], []
    for sow in sows:
        last = last_useful_completion(sow, size.delay, size.horizon)
        law = sow.law
        groups = [range(law.offsets[g], law.offsets[g + 1]) for g in range(law.group_arrivals.size)]
        for points in groups if plans else [[k] for k in range(law.arrivals.size)]:
            weight = float(sum(law.probabilities[k] for k in points))
            if weight == 0:
                continue
            a = int(law.arrivals[points[0]])
            for s in range(a, last):
                worth = sum(
                    float(law.probabilities[k]) / weight * sow.value(s + int(law.durations[k]))
                    for k in points
                    if s + law.durations[k] <= last
                )
                if worth <= 0:
                    continue
                for k in points:
                    for t in range(s, min(s + int(law.durations[k]), size.horizon + 1)):
                        slots.append(t - 1)
                        columns.append(len(values))
                        usage.append(sow.concurrency * float(law.probabilities[k]) / weight)
                values.append(worth)
                owner.append(len(caps))
            caps.append(weight)
    if not values:
        return 0.0
    n = len(values)
    fits = sparse.coo_array((usage, (slots, columns)), shape=(size.horizon, n))
    once = sparse.coo_array((np.ones(n), (owner, np.arange(n))), shape=(len(caps), n))
    right = np.concatenate((np.full(size.horizon, float(supply)), caps))
    found = optimize.linprog(-np.array(values), sparse.vstack([fits, once]).tocsr(), right, method="highs")
    assert found.status == 0, found.message
    return -found.fun
