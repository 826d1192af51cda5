"""Printed bounds hold for what is played: markets with every feature, each mechanism, each bound."""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from draws import many
from marketsched.agents.job import Job
from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, InvalidParameterError, InvalidReportError, LinearValue, TableValue
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.registry import get, get_mechanism, mechanism_names
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.play.hindsight import bounds_of, realised
from marketsched.play.optimum import optimum_bracket
from marketsched.relaxed_lp import hindsight_optimum, realised_bound
from marketsched.relaxed_lp.duality import dual_bound
from promise_markets import SIZES, drawn_world

pytestmark = pytest.mark.compiled  # whole markets: too long for plain kernels
MORE_NODES = {"posted-price": 1, "exponential": 1, "stochastic": 36}  # than the widest job: their theorem asks
OWN = {
    "quota": {"queues": {"few": {"nominal": 1, "owners": ["owner 0"]}, "many": {"nominal": 2}}},
}
NAMES = [name for name in mechanism_names() if get("mechanism", name).__module__.startswith("marketsched.")]


def jobs_of(seed):
    """Return jobs that save their work or not, wait or not, hide durations or not, and foresee them or not.

    Of every third market all rules take the jobs: durations are revealed, and values do not rise.
    """
    rng, jobs = np.random.default_rng([seed, 5]), []
    tame, scale = seed % 3 == 0, 10.0 ** int(rng.choice([0, 0, 4, 8]))
    for i, birth in enumerate(np.sort(rng.integers(1, 5, int(rng.integers(3, 8)))).tolist()):
        arrival, days = birth + int(rng.integers(0, 2)), np.sort(rng.choice(np.arange(1, 6), 2, replace=False)).tolist()
        value, last = scale * float(rng.uniform(0.5, 9)), arrival + int(rng.integers(2, 10))
        table = {last - 1: value, last + 1: value / 2} if rng.random() < 0.5 else {last: value}
        curves = DeadlineValue(value, last), LinearValue(value, arrival + 2, value / 6, last), TableValue(table)
        signal = () if tame or rng.random() < 0.5 else (None,)
        law = [(arrival, d, 0.5, *signal) for d in days]
        terms = {"patience": int(rng.integers(0, 6))} if rng.random() < 0.3 else {}
        terms |= {"checkpoint": int(rng.integers(1, 4))} if rng.random() < 0.6 else {}
        width = int(rng.integers(1, 3))
        curve = curves[int(rng.integers(2 if tame else 3))]
        truth = StatementOfWork(birth, width, curve, law, restarts=bool(rng.random() < 0.7), **terms)
        real = int(rng.choice(days)) if rng.random() < 0.8 else int(rng.integers(1, 6))  # unforeseen, resubmitted
        jobs.append(Job(f"job {i}", f"owner {i % 3}", truth, arrival, real, None if signal else real))
    return {**SIZES, "capacity": 2, "max_concurrency": 2, "max_value": 1e10}, jobs


def setup_of(name, seed):
    """Return a market of a mechanism; None: it refuses these jobs."""
    shapes = 3 if name.startswith("cluster-") and seed % 2 else 0
    if shapes:
        world = drawn_world(seed, hidden=bool(seed % 4 == 1), shapes=shapes, n=6)
        sizes, jobs = world.sizes, world.jobs
    else:
        sizes, jobs = jobs_of(seed)
    more = {"laws": [job.truth for job in jobs]} if name == "stochastic" else {}
    given = {**sizes, "capacity": sizes["capacity"] + MORE_NODES.get(name, 0)}
    try:
        market = get_mechanism(name, **given, **OWN.get(name, {}), **more)
    except InvalidParameterError:
        return None
    return MarketSetup(name, jobs, market, given["capacity"], sizes["horizon"], sizes["max_delay"], resubmit=not shapes)


@pytest.mark.slow_after(8)
@pytest.mark.parametrize("name", NAMES)
def test_no_mechanism_earns_more_than_a_bound(name):
    played = 0
    for seed in range(many(60, least=12)):
        setup = setup_of(name, seed)
        try:
            run = setup and MarketRun(setup)
            welfare = run.run().outcome["welfare"] if run else None
        except InvalidReportError:  # rising values, say
            continue
        if welfare is None:
            continue
        played += 1
        assert welfare <= bounds_of(run)["bounds"]["dual"], seed
        if setup.cluster is None and seed % 4 == 0:
            bracket = optimum_bracket(realised(setup), setup.capacity, seconds=5.0)
            assert bracket.low <= bracket.high and welfare <= bracket.high * (1 + 1e-15), (seed, bracket)
    assert played >= 3 or name == "stochastic"


def best_by_enumeration(jobs, nodes, horizon):
    """Return the value of the best schedule that may interrupt; a job is (arrival, duration, nodes, every, values)."""

    @lru_cache(None)
    def best(now, state):
        if now > horizon:
            return 0.0
        each = []
        for (arrival, d, width, every, values), (saved, run) in zip(jobs, state, strict=True):
            kept = saved + (run // every * every if every else 0)
            choices = [(0, (kept, 0), 0.0)]
            if saved >= 0 and now >= arrival:
                goes = {(saved, run + 1), (kept, 1)}
                choices += [(width, (-1, 0), values[now + 1]) if sum(x) == d else (width, x, 0.0) for x in goes]
            each.append(choices)
        taken = [picked for picked in product(*each) if sum(used for used, _, _ in picked) <= nodes]
        return max(sum(x[2] for x in picked) + best(now + 1, tuple(x[1] for x in picked)) for picked in taken)

    return best(1, ((0, 0),) * len(jobs))


def test_bounds_cover_interrupted_runs():
    more = 0
    for seed in range(many(160, least=40)):
        rng, rows, given = np.random.default_rng(seed), [], []
        nodes, horizon = int(rng.integers(1, 4)), int(rng.integers(5, 9))
        for _ in range(int(rng.integers(2, 5))):
            arrival, d, width = (int(x) for x in rng.integers([1, 1, 1], [5, 6, nodes + 1]))
            every, last = int(rng.choice([0, 1, 1, 2, 3])), arrival + d + int(rng.integers(0, 4))
            value = float(rng.uniform(1, 9))
            curve = DeadlineValue(value, last)
            curve = TableValue({last - 1: value, last + 1: value / 2}) if rng.random() < 0.3 else curve
            rows.append((StatementOfWork(1, width, curve, [(arrival, d, 1.0)], checkpoint=every or None), arrival, d))
            given.append((arrival, d, width, every, tuple(curve.table(0, horizon + 2).tolist())))
        jobs, best = RealisedJobs.build(rows, horizon=horizon, max_delay=99), best_by_enumeration(given, nodes, horizon)
        exact = hindsight_optimum(jobs, nodes, horizon)
        bounds = dual_bound(jobs, nodes, horizon).value, realised_bound(jobs, nodes, horizon).dual_value, exact.bound
        assert min(bounds) >= best, (seed, bounds, best)
        assert not exact.proven or exact.value >= best * (1 - 1e-9), seed
        more += best > best_by_enumeration([(*job[:3], 0, job[4]) for job in given], nodes, horizon) * (1 + 1e-9)
    assert more > 1  # the bounds of unbroken runs would be too small


def test_many_blocks_stand_for_several():
    """A job of 100 rounds that saves each of them, beside urgent ones, and one node."""
    long = StatementOfWork(1, 1, DeadlineValue(100.0, 200), [(1, 100, 1.0)], checkpoint=1)
    short = [StatementOfWork(a, 1, DeadlineValue(3.0, a + 1), [(a, 1, 1.0)]) for a in range(2, 190, 3)]
    jobs = RealisedJobs.build([(long, 1, 100), *((sow, sow.birth, 1) for sow in short)], horizon=200, max_delay=300)
    best = 100.0 + 3.0 * len(short)
    assert best <= dual_bound(jobs, 1, 200).value <= 1.01 * best
    assert hindsight_optimum(jobs, 1, 200).bound >= best > realised_bound(jobs, 1, 200).dual_value / 1.01
