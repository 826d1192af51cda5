"""What a round of credits does, beside a naive model: who leaves, pays, loses its nodes, and starts."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import naive_credits
from credit_markets import LAWS, SIZES
from draws import many
from marketsched.agents.job import Job
from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, RankValue, StatementOfWork
from marketsched.mechanisms.credits.credits import Credits

OWNERS = ("o0", "o1", "o2", "o3")
SHARES = [
    {"owners": OWNERS[:3]},
    {"shares": {"o0": 3, "o1": 1}},
    {"shares": {"o0": 2, "o1": 0.5, "guests/": 1}, "newcomers": "guests/"},
]
RULES = st.fixed_dictionaries(
    {
        "income": st.sampled_from([0.3, 0.5, 0.7, 1.0]),
        "carry_rounds": st.sampled_from([4.0, 20.0, 200.0]),
        "start": st.sampled_from([0.0, 0.5, 1.0]),
        "patience": st.sampled_from([0, 2, 6, 40]),
        "margin": st.sampled_from([0.0, 1.0, 5.0]),
        "reserve": st.sampled_from(["head", "none"]),
    }
)


def markets(seed, n, nodes, horizon, max_delay, shares, rules, ranked=0.3):
    """Return the same drawn jobs and rules as a market of the package and as the naive one."""
    rng, jobs, twins, fates = np.random.default_rng(seed), [], [], {}
    busiest = rng.random() * 4 + 1  # the larger, the more jobs are of the first owner
    for i, birth in enumerate(np.sort(rng.integers(1, horizon, n)).tolist()):
        name, owner = f"j{i}", OWNERS[int(4 * rng.random() ** busiest)]
        durations, chances = LAWS[rng.integers(len(LAWS))]
        width = int(min(nodes, np.ceil(nodes / 8 * rng.geometric(0.4)) if rng.random() < 0.7 else rng.geometric(0.4)))
        last = birth + int(rng.integers(0, 40))
        arrivals = [birth, birth + int(rng.integers(0, 4))]
        arrival = [*arrivals, None][rng.choice(3, p=[0.6, 0.35, 0.05])]
        duration = int(rng.choice([*durations, rng.integers(1, 16)]))
        every, seen = int(rng.choice([0, 0, 2, 3])) or None, rng.random() < 0.3 and duration in durations
        rank, mean = int(rng.integers(1, 10)), float(np.dot(durations, chances))
        value = float(rng.integers(1, 9)) * width  # equal importance is not rare
        curve = RankValue.of(rank, last, width, mean) if rng.random() < ranked else DeadlineValue(value, last)
        points = [(t, d, p / 2, d if seen else None) for t in arrivals for d, p in zip(durations, chances, strict=True)]
        truth = StatementOfWork(birth, width, curve, points, checkpoint=every)
        jobs.append(Job(name, owner, truth, arrival, duration, duration if seen else None))
        law = [(duration, 1.0)] if seen else list(zip(durations, chances, strict=True))
        useful = min(last, birth + max_delay - 1, horizon + 1)
        twin_rank = rank if isinstance(curve, RankValue) else None
        twins.append(naive_credits.Job(name, owner, width, law, useful, curve.value, twin_rank, every))
        fates[name] = (arrival, duration)
    sizes = {**SIZES, "max_concurrency": nodes, "max_delay": max_delay}
    market = Credits(nodes, horizon, **shares, **rules, **sizes)
    known = shares.get("shares") or dict.fromkeys(shares["owners"], 1)
    twin = naive_credits.Market(
        nodes, known, rules["income"], rules["carry_rounds"], rules["start"], rules["patience"], rules["margin"],
        SIZES["max_duration"], guests=shares.get("newcomers"), reserve=rules.get("reserve", "head"),
    )  # fmt: skip
    return market, jobs, twin, twins, fates


def rounds_of(market, jobs, fates, ending):
    """Yield the events of each round, as the protocol says them; ``ending`` names the runs that end in it."""
    while market.round <= market.horizon:
        now = market.round
        for job in jobs:
            if job.truth.birth == now:
                market.submit(job.name, job.truth, owner=job.owner)
        for job in jobs:
            if fates[job.name][0] == now:
                market.arrive(job.name, job.signal)
        events = market.advance()
        events += [market.complete(name) for name in ending()]
        assert all((e.round, e.payment) == (now, 0.0) for e in events)
        assert all(e.completion == (now + 1 if e.kind.value == "complete" else None) for e in events)
        yield [(e.kind.value, e.job) for e in events]


@settings(max_examples=many(60, least=15), phases=[Phase.explicit, Phase.reuse, Phase.generate])  # seeds do not shrink
@given(
    seed=st.integers(0, 10**6),
    sizes=st.sampled_from([(8, 8), (30, 8), (60, 40), (200, 60)]),
    nodes=st.sampled_from([8, 50]),
    max_delay=st.sampled_from([15, 100]),
    shares=st.sampled_from(SHARES),
    rules=RULES,
)
def test_drawn_markets_are_those_of_the_naive_model(seed, sizes, nodes, max_delay, shares, rules):
    n, horizon = sizes
    market, jobs, twin, twins, fates = markets(seed, n, nodes, horizon, max_delay, shares, rules)
    expected = []
    changed = {1: ("o1", 2.0), 5: ("o0", 0.5), 9: ("o3", 1.0)} if "shares" in shares and seed % 2 else {}
    rounds = rounds_of(market, jobs, fates, lambda: [name for kind, name in expected if kind == "complete"])
    if changed:
        market.set_share(*changed[1])
        twin.set_share(*changed[1])
    for expected in twin.play(twins, fates, horizon):
        assert next(rounds) == expected
        if twin.now in changed and twin.now <= horizon:
            market.set_share(*changed[twin.now])
            twin.set_share(*changed[twin.now])
        assert market._usual.kappa == twin.kappa and market._offered.share == twin.load
        assert market._usual.rounds.tolist() == pytest.approx([twin.usual_in(band) for band in range(5)], rel=1e-12)
        for job in twin.jobs:
            found = market.class_of(job.name)
            if job.name not in twin.completed:
                assert (found.name, found.paid) == ("free" if job.regular is None else "regular", job.paid)
        if twin.now % 8 == 1 and twin.now <= horizon:
            width, last = twin.now % nodes + 1, min(twin.now + 12, horizon + 1)
            law = [(twin.now, 4, 1.0, None)]
            report = StatementOfWork(twin.now, width, DeadlineValue(8.0, last), law)
            for owner in OWNERS:
                assert market.outlook(report, owner) == twin.outlook(width, [(4, 1.0)], last, 8.0, owner)
    assert market.purses.names == list(twin.owners)
    for name, of_twin in (("held", "purse"), *((each, each) for each in ("earned", "spent", "expired"))):
        assert getattr(market.purses, name).tolist() == [getattr(each, of_twin) for each in twin.owners.values()]
    of_both = (market.upgrades, twin.upgrades)
    found, expected = (sorted(map(astuple, each), key=lambda row: (row[2], row[0])) for each in of_both)
    assert str(found) == str(expected)  # nan is not equal to itself
    found = market.statistics()
    assert {name: found[name] for name in twin.counts} == pytest.approx(twin.counts)
    assert [(e.round, e.kind.value, e.job) for e in market.close()] == [(horizon, *e) for e in twin.close(twins)]


def test_jobs_in_columns_are_played_as_jobs_by_name():
    for seed in range(many(12, least=4)):
        rules = {"income": 0.5, "carry_rounds": 12.0, "start": 0.5, "patience": 6, "margin": 1.0}
        shares = SHARES[seed % 3]

        def setup(seed=seed, shares=shares, rules=rules):
            market, jobs, *_ = markets(seed, 60, 8, 40, 100, shares, rules, ranked=0.0)
            return MarketSetup("drawn", jobs, market, 8, 40, 100)

        found = compare_plays(setup)
        assert found.whole and found.difference == ""
