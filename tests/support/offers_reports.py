"""Reports of a grid in drawn markets of six to nine jobs, the job's durations enumerated: does one beat the truth?

Patience is a report, too: each report is played in the entry that it prefers, and in one that is drawn. Beside it, what
a job gains by half of the patience that it would choose; and whether a report moves anything inside an entry.
"""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np

from marketsched.agents.lies.base import restated
from marketsched.mechanisms import DeadlineValue, EventKind, StatementOfWork
from marketsched.mechanisms.offers.patience import POSTED
from offers_markets import LAWS, Fixed, SetFromDeadline, drawn_offers, left_in, played, random_jobs, sizes_of

NODES = 4
REPORTS, WIDER = 30, 6  # that are drawn of the grid in each market
FACTORS, LATER = (0.15, 0.6, 1.0, 2.0, 8.0), (-3, 0, 4)


def reports_of(truth, wider=False):
    """Yield reports of a job: laws, values, deadlines; with ``wider`` those of more nodes."""
    laws = [(truth.law.durations.tolist(), truth.law.probabilities.tolist()), *LAWS]
    widths = range(truth.concurrency + 1, NODES + 1) if wider else (truth.concurrency,)
    for (days, weights), factor, later, width in itertools.product(laws, FACTORS, LATER, widths):
        value = DeadlineValue(min(999.0, factor * truth.value.highest), max(truth.birth + 1, truth.value.last + later))
        rows = [(truth.birth, d, p, None) for d, p in zip(days, weights, strict=True)]
        yield StatementOfWork(truth.birth, width, value, rows, checkpoint=truth.checkpoint)


def drawn(rng, reports, n):
    """Return ``n`` of the reports, or all if there are fewer."""
    known = list(reports)
    return [known[i] for i in rng.permutation(len(known))[:n]]


class StoppedRunsPay(Fixed):
    """Rounds used are charged to a run that ends at its own limit, and not to one that is taken back."""

    def _depart(self, now):
        rows = {x.job: (x.start, x.agreed.rate * x.sow.concurrency) for x in self._in_row.values()}
        charged = []
        for e in super()._depart(now):
            start, rate = rows[e.job]
            evicted = e.kind is EventKind.EVICT and start
            charged.append(replace(e, payment=rate * (now - start)) if evicted else e)
        return charged


class PatienceByDeadline(SetFromDeadline, Fixed):
    """Who reports a nearer deadline is served earlier, at the same rate."""


CONTROLS = {"stopped runs pay": StoppedRunsPay, "patience set from the deadline": PatienceByDeadline}


class World:
    """A market of few jobs, and one of them, whose durations are enumerated; all save their work every ``saves``."""

    def __init__(self, seed, made=Fixed, saves=None):
        rng = np.random.default_rng(seed)
        self.jobs = random_jobs(seed, int(rng.integers(6, 10)), NODES, span=8, curves=("deadline",))
        self.jobs = [replace(job, truth=restated(job.truth, checkpoint=saves)) for job in self.jobs]
        self.mine = int(rng.integers(len(self.jobs)))
        self.job = self.jobs[self.mine]
        self.rules = drawn_offers(rng)
        self.made = made

    def sizes(self):
        """Return the sizes of a market in which every report is legal."""
        (_, horizon), limits = sizes_of(self.jobs, NODES)
        limits["max_delay"] = horizon + max(LATER)
        return (NODES, limits["max_delay"]), limits

    def market(self, taken=None):
        """Return a market in which the job takes an entry, or (None) the one that it prefers."""
        sizes, limits = self.sizes()
        return self.made(*sizes, **limits, chosen={} if taken is None else {self.job.name: taken}, **self.rules)

    def played(self, report, taken=None):
        """Return expected true utility of a report, the entry it takes, and the market at its end."""
        utility, law = 0.0, self.job.truth.law
        for duration, probability in zip(law.durations.tolist(), law.probabilities.tolist(), strict=True):
            jobs = [replace(job, duration=duration) if i == self.mine else job for i, job in enumerate(self.jobs)]
            market = self.market(taken)
            for e in played(market, jobs, {self.job.name: report})[0]:
                if e.job == self.job.name:
                    done = e.kind is EventKind.COMPLETE
                    utility += probability * ((float(self.job.truth.value(e.completion)) if done else 0.0) - e.payment)
        return utility, market.taken.get(self.job.name), market


def findings(seed, made=Fixed, wider=WIDER, saves=None):
    """Return counts of what reports do in one market.

    ``announced better``: the report takes an entry that was offered to the truth, and announced as worth more than the
    one that the truth takes; ``not offered``: one of more patience than the deadline of the truth allows, that would be
    worth more by the same odds; ``of them in hindsight``: and brings more. ``better inside``: it brings more than the
    truth in the same entry. ``saves``: rounds after which all jobs save their work, and say so; other ``checkpoints``
    are then reported, too, in a drawn spare entry: how often they bring more, and less, than the truth.
    """
    world, found, inside = World(seed, made, saves), Counter(), {}
    truth, draw = world.job.truth, np.random.default_rng(seed)
    by_truth, _, market = world.played(truth)
    nothing = np.zeros((2, 1))
    announced, every = (x.get(world.job.name, nothing) for x in (market.values, market.every))
    best = max(0.0, announced.max())

    def of_truth(taken):
        if taken not in inside:
            inside[taken] = 0.0 if taken is None else world.played(truth, taken)[0]
        return inside[taken]

    for report in drawn(draw, reports_of(truth), REPORTS):
        utility, taken, _ = world.played(report)
        forced = int(draw.integers(2)), int(draw.integers(announced.shape[1]))
        found["reports"] += 2
        found["taken", taken if taken is None else taken[0]] += 1
        found["announced better"] += taken is not None and announced[taken] > best + 1e-9
        beyond = taken is not None and every[taken] > best + 1e-9 >= announced[taken]
        found["not offered"] += beyond
        found["of them in hindsight"] += beyond and utility > by_truth + 1e-9
        found["better inside"] += utility > of_truth(taken) + 1e-9
        found["better inside"] += world.played(report, forced)[0] > of_truth(forced) + 1e-9
        found["other entries"] += taken is not None and taken[1] != 0
    for other in () if saves is None else sorted({0, 1, 2, 3} - {saves}):
        forced = 0, int(draw.integers(announced.shape[1]))
        gain = world.played(restated(truth, checkpoint=other), forced)[0] - of_truth(forced)
        found["checkpoints", other] += 1
        found["checkpoints", other, "up" if gain > 1e-9 else "down" if gain < -1e-9 else "same"] += 1
    for report in drawn(draw, reports_of(truth, wider=True), wider):
        utility, taken, _ = world.played(report)
        found["wider"] += 1
        found["wider gains"] += utility > of_truth(taken) + 1e-9
    return found


def moved(seed, made=Fixed):
    """Return how many reports were made in an entry that is drawn, and how many moved anything, bit for bit."""
    world, draw, n, found = World(seed, made), np.random.default_rng(seed), 0, 0
    name = world.job.name
    entry = int(draw.integers(2)), int(draw.integers(24))  # patience up to 32 rounds
    told, _ = played(world.market(entry), world.jobs)
    for report in drawn(draw, reports_of(world.job.truth), REPORTS):
        said, _ = played(world.market(entry), world.jobs, {name: report})
        until = min(left_in(told, name), left_in(said, name))
        n += 1
        found += [e for e in told if e.round < until] != [e for e in said if e.round < until]
    return n, found


def by_half_the_patience(seed, made=Fixed):
    """Return what a job gains, of its value, by half of the patience that it would choose; None: it takes nothing."""
    world = World(seed, made)
    truth, taken, _ = world.played(world.job.truth)
    if taken is None:
        return None
    half = taken[0], int(np.searchsorted(POSTED, POSTED[taken[1]] / 2))
    return (world.played(world.job.truth, half)[0] - truth) / world.job.truth.value.highest
