"""Reports of a grid in drawn markets of six to nine jobs, the job's durations enumerated: none beats the truth.

Patience is a report, too: each report is played in the entry that it prefers, and in one that is drawn.

`MARKETSCHED_OFFERS_MARKETS` says how many markets (25), `MARKETSCHED_OFFERS_FIRST` the first seed (0).
"""

import itertools
import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from marketsched.mechanisms import DeadlineValue, EventKind, StatementOfWork
from offers_markets import LAWS, Fixed, drawn_offers, played, random_jobs, sizes_of

pytestmark = pytest.mark.slow
MARKETS = int(os.environ.get("MARKETSCHED_OFFERS_MARKETS", "25"))
FIRST = int(os.environ.get("MARKETSCHED_OFFERS_FIRST", "0"))
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
        yield StatementOfWork(truth.birth, width, value, rows)


def drawn(rng, reports, n):
    """Return ``n`` of the reports, or all if there are fewer."""
    known = list(reports)
    return [known[i] for i in rng.permutation(len(known))[:n]]


class World:
    """A market of few jobs, and one of them, whose durations are enumerated."""

    def __init__(self, seed, made=Fixed):
        rng = np.random.default_rng(seed)
        self.jobs = random_jobs(seed, int(rng.integers(6, 10)), NODES, span=8, curves=("deadline",))
        self.mine = int(rng.integers(len(self.jobs)))
        self.job = self.jobs[self.mine]
        self.rules = drawn_offers(rng)
        self.made = made

    def played(self, report, taken=None):
        """Return expected true utility of a report, the entry it takes, and what entries were announced as worth."""
        utility, law = 0.0, self.job.truth.law
        for duration, probability in zip(law.durations.tolist(), law.probabilities.tolist(), strict=True):
            jobs = [replace(job, duration=duration) if i == self.mine else job for i, job in enumerate(self.jobs)]
            chosen = {} if taken is None else {self.job.name: taken}
            (_, horizon), limits = sizes_of(self.jobs, NODES)
            limits["max_delay"] = horizon = horizon + max(LATER)
            market = self.made(NODES, horizon, **limits, chosen=chosen, **self.rules)
            for e in played(market, jobs, {self.job.name: report})[0]:
                if e.job == self.job.name:
                    done = e.kind is EventKind.COMPLETE
                    utility += probability * ((float(self.job.truth.value(e.completion)) if done else 0.0) - e.payment)
        return utility, market.taken.get(self.job.name), market.values.get(self.job.name, np.zeros((2, 1)))


def findings(seed, made=Fixed):
    """Return counts: reports, those better by the announcement, better inside an entry, and wider ones that gain."""
    world, found, inside = World(seed, made), Counter(), {}
    truth = world.job.truth
    announced = world.played(truth)[2]
    best, draw = max(0.0, announced.max()), np.random.default_rng(seed)

    def of_truth(taken):
        if taken not in inside:
            inside[taken] = 0.0 if taken is None else world.played(truth, taken)[0]
        return inside[taken]

    for report in drawn(draw, reports_of(truth), REPORTS):
        utility, taken, _ = world.played(report)
        forced = int(draw.integers(2)), int(draw.integers(announced.shape[1]))
        found["reports"] += 1
        found["taken", taken if taken is None else taken[0]] += 1
        found["announced better"] += taken is not None and announced[taken] > best + 1e-9
        found["better inside"] += utility > of_truth(taken) + 1e-9
        found["better inside"] += world.played(report, forced)[0] > of_truth(forced) + 1e-9
        found["other entries"] += taken is not None and taken[1] != 0
    for report in drawn(draw, reports_of(truth, wider=True), WIDER):
        utility, taken, _ = world.played(report)
        found["wider"] += 1
        found["wider gains"] += utility > of_truth(taken) + 1e-9
    return found


def test_no_report_beats_the_truth():
    found = sum((findings(seed) for seed in range(FIRST, FIRST + MARKETS)), Counter())
    print(dict(found))
    assert found["reports"] == REPORTS * MARKETS and min(found["taken", offer] for offer in (0, 1, None)) > 0
    assert found["announced better"] == found["better inside"] == 0


def test_a_run_that_pays_when_it_is_stopped_is_caught():
    """Rounds used are charged to a run that ends at its own limit, and not to one that is taken back."""

    class Charges(Fixed):
        def _depart(self, now):
            rows = {x.job: (x.start, x.agreed.rate * x.sow.concurrency) for x in self._in_row.values()}
            charged = []
            for e in super()._depart(now):
                start, rate = rows[e.job]
                evicted = e.kind is EventKind.EVICT and start
                charged.append(replace(e, payment=rate * (now - start)) if evicted else e)
            return charged

    assert any(findings(seed, Charges)["better inside"] for seed in range(6))
