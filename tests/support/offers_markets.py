"""Markets of jobs whose durations are hidden, to play two offers in; and offers that a test chooses."""

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork, TableValue
from marketsched.mechanisms.offers.announced import report_of
from marketsched.mechanisms.offers.patience import POSTED
from marketsched.mechanisms.offers.two_offers import TwoOffers

LAWS = (((1,), (1.0,)), ((3,), (1.0,)), ((1, 4), (0.5, 0.5)), ((2, 6), (0.7, 0.3)), ((1, 2, 5), (0.4, 0.3, 0.3)))


FAR = 10**9  # rounds: as if the deadline allowed any patience
NOTHING = 1e-12  # credits: an entry that is not worth more is not taken
CALM = 20  # the patience that tests choose for whom they choose no other, rounds


def entry(offer, patience=CALM):
    """Return the entry (class and column of the menu) with that posted patience."""
    (column,) = np.flatnonzero(patience == POSTED)
    return offer, int(column)


class Chosen(TwoOffers):
    """Jobs named in ``chosen`` take that entry, whatever they report; ``values`` are kept.

    ``taken`` are the entries. A class alone (0 spare, 1 regular) stands for the one with `CALM` patience. An entry in
    which no run could bring what it costs is not taken: no job would choose it, and one in it could leave only in the
    round after its arrival, in which it may have started. ``every`` are the values of all entries, by the same curve,
    also of those with more patience than the deadline of the report allows, which are not offered.
    """

    def __init__(self, *sizes, chosen=(), **rules):
        super().__init__(*sizes, **rules)
        self.chosen = {job: entry(each) if isinstance(each, int) else each for job, each in dict(chosen).items()}
        self.values, self.every, self.taken = {}, {}, {}

    def _preferred(self, x, values):
        menu = self._hidden.menu(self.round, self._unbooked)
        report = report_of(x)
        self.values[x.job], self.every[x.job] = values, menu.entries(report._replace(last=FAR)).values
        taken = self.chosen.get(x.job, super()._preferred(x, values))
        self.taken[x.job] = taken if taken and self.every[x.job][taken] > NOTHING else None
        return self.taken[x.job]


class Fixed(Chosen):
    """Two offers at rates and odds that a test draws: few jobs leave a tiny market, and teach little."""

    def __init__(self, *sizes, rate, odds, **rules):
        super().__init__(*sizes, **rules)
        self._hidden.rates.posted = (0.2 * rate, rate)
        self._hidden.learnt.odds[:, :, 0] = odds * self._hidden.learnt.odds[:, :, 1]


def drawn_offers(rng):
    """Return a rate, and odds that rise with the slack, as parameters of `Fixed`."""
    odds = np.sort(rng.uniform(0.05, 1.0, (2, 2, 6)), axis=2).reshape(2, 12)
    return {"rate": float(np.exp(rng.normal(-0.5, 1.0))), "odds": odds}


def curve_of(kind, value, last):
    """Return a curve that is over at ``last``."""
    if kind == "deadline":
        return DeadlineValue(value, last)
    if kind == "linear":
        return LinearValue(value, max(0, last - 4), value / 8, last)
    return TableValue({t: value / (1 + max(0, t - last + 3)) for t in range(1, last + 1)})


def random_jobs(seed, n=40, capacity=6, span=25, curves=("deadline", "linear", "table"), revealed=0.0):
    """Return jobs in order of birth; each is ready when it is born."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i, birth in enumerate(np.sort(rng.integers(1, span, n)).tolist()):
        durations, weights = LAWS[rng.integers(len(LAWS))]
        shown = rng.random() < revealed
        width = int(rng.choice([1, 1, 1, 2, 3, capacity]))
        value = float(np.exp(rng.normal(0.8, 1.0))) * width * float(np.dot(durations, weights))
        last = birth + max(durations) + int(rng.integers(1, 12))
        rows = [(birth, d, p, *([] if shown else [None])) for d, p in zip(durations, weights, strict=True)]
        truth = StatementOfWork(birth, width, curve_of(rng.choice(curves), min(value, 999.0), last), rows)
        real = int(rng.choice(durations, p=weights))
        jobs.append(Job(f"job {i}", f"owner {i % 5}", truth, birth, real, real if shown else None))
    return jobs


def sizes_of(jobs, capacity=6):
    """Return the sizes of a market of these jobs."""
    last = max(job.truth.value.last for job in jobs)
    limits = {"max_concurrency": capacity, "max_duration": 8, "max_value": 1000.0, "max_delay": last}
    return (capacity, last + 8), limits


def played(mechanism, jobs, reports=None, last=None):
    """Play a market in which some jobs report something else; return its events and the load of each round."""
    market, events, loads = MarketLoop(mechanism), [], []
    owners = TruthfulOwners(jobs)
    submit = market.submit
    if reports:
        market.submit = lambda name, sow, *rest, **more: submit(name, reports.get(name, sow), *rest, **more)
    while market.now <= (last or mechanism.horizon):
        owners.act(market)
        events += market.clear()
        loads.append(market.load)
    return events, loads


def left_in(events, name):
    """Return the round of the event with which a job left; far away: it did not."""
    return next((e.round for e in events if e.job == name and e.kind.leaves), 10**9)


class SetFromDeadline:
    """Beside a mechanism of offers: it says itself how patient a job is, by the deadline that the job reports."""

    def _choose(self, x, now):
        taken = super()._choose(x, now)
        if taken:
            last, mean = self.limits.last_useful_completion(x.sow), round(x.sow.law.durations.mean())
            self._hidden.present.jobs["latest"][x.agreed.row] = last - mean
            self._hidden.present._queue = None  # it may stand elsewhere now
        return taken


class Unpriced:
    """Beside a mechanism of offers: any patience costs the same."""

    def _choose(self, x, now):
        self._hidden.learnt.usual, self._hidden._menu = float(FAR), None  # every patience is short beside it
        return super()._choose(x, now)
