"""Tiny clusters of two kinds of nodes and two resources, to play `cluster-offers` in; entries that a test chooses.

Jobs have hidden durations, which differ between the kinds for some of them, so that a report of the law could also
move the place that a job gets.
"""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import ClusterOffers, DeadlineValue, EventKind, StatementOfWork
from marketsched.mechanisms.offers.cluster_offers import Entry
from marketsched.mechanisms.offers.cluster_present import way_of
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.shapes import Shape
from node_requests import CPU, GPU
from offers_markets import drawn_offers, left_in

CLUSTER = Cluster((CPU, GPU), [NodeGroup("a", "a", 2, {"cpu": 4, "gpu": 2}), NodeGroup("c", "c", 2, {"cpu": 4})])
NEEDS = (
    ({"cpu": 1}, ("a", "c")),
    ({"cpu": 3}, ("c", "a")),
    ({"cpu": 1.5, "gpu": 1}, ("a",)),
    ({"cpu": 1, "gpu": 0.5}, ("a",)),
    ({"cpu": 2, "gpu": 2}, ("a",)),
    ({"cpu": 4}, ("c", "a")),
)
LAWS = (((1,), (1.0,)), ((3,), (1.0,)), ((1, 4), (0.5, 0.5)), ((2, 6), (0.7, 0.3)), ((1, 2, 5), (0.4, 0.3, 0.3)))
FACTORS, LATER = (0.15, 0.6, 1.0, 2.0, 8.0), (-3, 0, 4)
LONGEST, REPORTS, COLUMNS = 12, 24, 24  # rounds; reports of a market; the first patiences, up to 32 rounds


def stated(birth, value, each, speeds, law):
    """Return a statement; ``speeds`` are how many times as long it takes, by kind."""
    durations, chances = law
    shape = Shape(each, {kind: tuple(times * d for d in durations) for kind, times in speeds.items()})
    return StatementOfWork.of_shapes(birth, value, birth, [shape], chances, revealed=False)


def drawn_jobs(seed, n=None, span=8):
    """Return jobs in order of birth, with the case of its law that each will be."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i, birth in enumerate(np.sort(rng.integers(1, span, n or int(rng.integers(9, 14)))).tolist()):
        law, (each, kinds) = LAWS[rng.integers(len(LAWS))], NEEDS[rng.integers(len(NEEDS))]
        speeds = dict(zip(kinds, rng.permutation([1, 2])[: len(kinds)].tolist(), strict=True))
        speeds = speeds if rng.random() < 0.5 else dict.fromkeys(kinds, 1)
        mean = float(np.dot(*law))
        value = min(999.0, float(np.exp(rng.normal(0.8, 1.0))) * mean)
        last = birth + max(law[0]) * max(speeds.values()) + int(rng.integers(1, 12))
        truth = stated(birth, DeadlineValue(value, last), each, speeds, law)
        duration = speeds[kinds[0]] * int(rng.choice(law[0], p=law[1]))
        jobs.append(Job(f"job {i}", f"owner {i % 3}", truth, birth, duration))
    return jobs


def cases_of(job):
    """Yield the job with each of its durations on the first kind, and their probabilities."""
    first = job.truth.shapes[0]
    for d, p in zip(first.on[first.kinds[0]], job.truth.law.probabilities.tolist(), strict=True):
        yield replace(job, duration=d), p


def reports_of(truth):
    """Yield reports of laws, values and deadlines."""
    (shape,) = truth.shapes
    own = shape.on[shape.kinds[0]]
    speeds = [dict.fromkeys(shape.kinds, 1)]
    if len(shape.kinds) > 1:
        speeds += [dict(zip(shape.kinds, times, strict=True)) for times in ((1, 2), (2, 1))]
    laws = [(own, tuple(truth.law.probabilities.tolist())), *LAWS]
    for law, speed, factor, later in itertools.product(laws, speeds, FACTORS, LATER):
        deadline = max(truth.birth + 1, truth.value.last + later)
        value = DeadlineValue(min(999.0, factor * truth.value.highest), deadline)
        if max(law[0]) * max(speed.values()) <= LONGEST:
            yield stated(truth.birth, value, dict(shape.each), speed, law)


class Chosen(ClusterOffers):
    """A job named in ``chosen`` takes that entry, whatever it reports: all its pools, or one; class; column.

    An entry in which no run could bring what it costs is not taken: no job would choose it. Rates and odds are drawn:
    few jobs leave a tiny market, and teach little. ``taken`` and ``values`` are entries, with their announced values.
    """

    def __init__(self, *sizes, chosen=(), rate=0.0, odds=None, **rules):
        super().__init__(*sizes, **rules)
        self.chosen, self.taken, self.values = dict(chosen), {}, {}
        self.rates.posted = (0.2 * rate, rate)
        if odds is not None:
            self.learnt.odds[:, :, 0] = odds * self.learnt.odds[:, :, 1]

    def entries(self, each, way, now):
        found = super().entries(each, way, now)
        self.values[each.x.job, tuple(way.rows)] = found.values
        return found

    def _preferred(self, each, now):
        found = super()._preferred(each, now) if each.x.job not in self.chosen else self._forced(each, now)
        if found is not None:
            self.taken[each.x.job] = tuple(found.way.rows), found.offer, found.column
        return found

    def _forced(self, each, now):
        pools, offer, column = self.chosen[each.x.job]
        rows = np.array(pools) if pools else np.arange(each.options.pool.size)
        way = way_of(each, rows, now, self._n_pools, self.unit)
        if way is None:
            return None
        entries = super().entries(each, way, now)
        pays = way.report.last_start(float(entries.rates[offer, column])) >= now
        return Entry(way, entries, offer, column) if pays else None


class PlacedBySpeed(Chosen):
    """A planted fault: of the pools of its entry a job gets the one in which it says that it is fastest."""

    def _start(self, each, rows, now, events):
        return super()._start(each, [min(rows, key=lambda row: each.means[row])], now, events)


class LongRunsStay(Chosen):
    """A planted fault: runs that say that they are long are not taken back."""

    def _may_go(self, each):
        return {run: other for run, other in super()._may_go(each).items() if other.way.report.mean <= 3}


class PatienceByDeadline(Chosen):
    """A planted fault: who reports a nearer deadline is served earlier, at the same rate."""

    def _take(self, each, entry, now):
        super()._take(each, entry, now)
        each.latest = each.x.limit - round(entry.way.report.mean)


class StoppedRunsPay(Chosen):
    """A planted fault: rounds used are charged to a run that ends at its own limit, and not to one taken back."""

    def _depart(self, now):
        rates = {each.x.job: (each.x.start, each.rate) for each in self._present.values() if each.run is not None}
        events = super()._depart(now)
        owed = {job: rate * (now - start) for job, (start, rate) in rates.items()}
        return [replace(e, payment=owed[e.job]) if e.job in owed else e for e in events]


MOVING = {"placed by speed": PlacedBySpeed, "long runs stay": LongRunsStay, "by deadline": PatienceByDeadline}
GAINING = {"stopped runs pay": StoppedRunsPay}


def market_of(jobs, made=Chosen, **rules):
    """Return a market in which every report of `reports_of` is legal."""
    last = max(job.truth.value.last for job in jobs) + max(LATER)
    sizes = {"max_concurrency": 1, "max_duration": LONGEST, "max_value": 1000.0, "max_delay": last, "cluster": CLUSTER}
    return made(CLUSTER.nodes, last + LONGEST, **sizes, **rules)


def places_of(market):
    """Return where everything runs: nodes and devices, by job."""
    bookings = {name: market.booking(name) for name in market._present}
    return {
        name: (found.placed.nodes.tolist(), found.placed.devices.tolist(), found.placed.parts.tolist())
        for name, found in bookings.items()
        if found is not None
    }


def played(market, jobs, reports=None, watch=None):
    """Play a market in which some jobs report something else; return its events, and places by round."""
    loop, events, places = MarketLoop(market), [], []
    owners, submit = TruthfulOwners(jobs), loop.submit
    if reports:
        loop.submit = lambda name, sow, *rest, **more: submit(name, reports.get(name, sow), *rest, **more)
    advance = market.advance

    def watched():
        found = advance()
        places.append(places_of(market))
        if watch is not None:
            watch(market, found)
        return found

    market.advance = watched
    while loop.now <= market.horizon:
        owners.act(loop)
        events += loop.clear()
    return events, places


class World:
    """A market of few jobs, and one of them, whose durations are enumerated."""

    def __init__(self, seed, made=Chosen):
        rng = np.random.default_rng(seed)
        self.jobs = drawn_jobs(seed)
        self.mine = int(rng.integers(len(self.jobs)))
        self.job, self.made, self.rules = self.jobs[self.mine], made, drawn_offers(rng)

    def forced(self, draw):
        """Return an entry that is drawn."""
        kinds = len(self.job.truth.shapes[0].kinds)
        pools = () if draw.random() < 0.5 else (int(draw.integers(kinds)),)
        return pools, int(draw.integers(2)), int(draw.integers(COLUMNS))

    def market(self, taken=None):
        """Return a market in which the job takes an entry, or (None) the one that it prefers."""
        chosen = {} if taken is None else {self.job.name: taken}
        return market_of(self.jobs, self.made, chosen=chosen, **self.rules)

    def utility(self, report, taken=None):
        """Return the expected true utility of a report, and the market at its end."""
        found = 0.0
        for job, chance in cases_of(self.job):
            market = self.market(taken)
            jobs = [job if i == self.mine else other for i, other in enumerate(self.jobs)]
            for e in played(market, jobs, {job.name: report})[0]:
                if e.job == job.name:
                    done = e.kind is EventKind.COMPLETE
                    found += chance * ((float(job.truth.value(e.completion)) if done else 0.0) - e.payment)
        return found, market


def drawn(draw, reports, n=REPORTS):
    """Return ``n`` of the reports, or all if there are fewer."""
    known = list(reports)
    return [known[i] for i in draw.permutation(len(known))[:n]]


def moved(seed, made=Chosen, n=REPORTS):
    """Return how many reports were made in an entry that is drawn, and how many moved anything, bit for bit."""
    world, draw, count, found = World(seed, made), np.random.default_rng(seed), 0, 0
    name, entry = world.job.name, world.forced(draw)
    told, there = played(world.market(entry), world.jobs)
    for report in drawn(draw, reports_of(world.job.truth), n):
        said, then = played(world.market(entry), world.jobs, {name: report})
        until = min(left_in(told, name), left_in(said, name))
        count += 1
        same = [e for e in told if e.round < until] == [e for e in said if e.round < until]
        found += not same or there[: until - 1] != then[: until - 1]
    return count, found


def findings(seed, made=Chosen, n=REPORTS):
    """Return counts of what reports do in one market, in the entry that they prefer and in one that is drawn.

    ``better inside``: a report brings more than the truth in the same entry. ``announced better``: it takes an entry
    that the truth was offered, and announced as worth more than the one that the truth takes. ``not offered``: it takes
    one that the truth was not offered.
    """
    world, draw, found, inside = World(seed, made), np.random.default_rng(seed), Counter(), {}
    name, truth = world.job.name, world.job.truth
    _, market = world.utility(truth)
    announced = {rows: values for (job, rows), values in market.values.items() if job == name}
    best = max((float(values.max()) for values in announced.values()), default=0.0)

    def of_truth(taken):
        if taken not in inside:
            inside[taken] = 0.0 if taken is None else world.utility(truth, taken)[0]
        return inside[taken]

    for report in drawn(draw, reports_of(truth), n):
        utility, market = world.utility(report)
        taken, forced = market.taken.get(name), world.forced(draw)
        found["reports"] += 2
        if taken is not None:
            rows, offer, column = taken
            offered = rows in announced and announced[rows][offer, column] > 0
            found["not offered"] += not offered
            found["announced better"] += offered and announced[rows][offer, column] > best + 1e-9
        found["better inside"] += utility > of_truth(taken) + 1e-9
        found["better inside"] += world.utility(report, forced)[0] > of_truth(forced) + 1e-9
    return found
