"""What a round of credits does, by hand and beside a naive model: who leaves, pays, loses its nodes, and starts."""

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
from marketsched.mechanisms.credits.departures import Usual
from marketsched.mechanisms.credits.present import DONE, JOB
from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.credits.service import prepay, serve_free, serve_regular
from marketsched.mechanisms.offers.departures import UNKNOWN
from marketsched.mechanisms.offers.present import Rows
from marketsched.mechanisms.schedulers.turns import Accounts


def rows_of(*jobs):
    """Return jobs in order of arrival; a field that one does not name is 0."""
    present = Rows(JOB)
    for job in jobs:
        present.enter(tuple(job.get(name, 0) for name in JOB.names))
    return present


def purses_of(*credits):
    """Return the purses of owners 0, 1, ..., which hold so many credits."""
    purses = Purses(Accounts(owners=range(len(credits))), 8, 0.5, 100.0, 0.0)
    purses.held[:] = np.array(credits) * CREDIT
    return purses


def test_who_leaves_teaches_what_jobs_announce_and_how_much_of_it_is_true():
    present, usual = (
        rows_of(
            {"start": 2, "stop": 10, "mean": 6.0, "width": 5},  # its run is stopped now
            {"start": 2, "stop": 11, "mean": 50.0},
            {"last_start": 10, "mean": 50.0},  # it may still start
            {"last_start": 9, "mean": 2.0},
            {"start": 3, "stop": 90, "mean": 4.0, "width": 2, "band": 1, "state": DONE, "used": 3},
        ),
        Usual(),
    )
    first = present.turn[:5].tolist()
    assert usual.rounds.tolist() == [UNKNOWN] * 5 and usual.kappa == 1.0
    assert usual.departed(present, 10).tolist() == [first[0], first[3], first[4]]
    assert present.turn[: present.n].tolist() == first[1:3]
    announced, jobs = 0.97 * 6 + 2, 0.97 + 1
    assert usual.rounds == pytest.approx(
        [announced / jobs, 4.0, *[(announced + 4) / (jobs + 1)] * 3]
    )  # unknown bands: of all
    assert usual.kappa == pytest.approx((0.98 + 2 * 3) / (0.98 + 2 * 4))  # of completed jobs alone
    before = usual.rounds.copy()
    assert usual.departed(present, 10).size == 0 and (usual.rounds == before).all()
    assert usual.departed(present, 11).tolist() == first[1:3] and present.n == 0


def test_a_regular_run_pays_its_nodes_or_goes_on_as_a_free_one():
    regular = {"start": 3, "since": 2, "width": 2}
    present = rows_of(regular, {**regular, "owner": 1}, regular, {"start": 3, "width": 2}, {"since": 2})
    purses = purses_of(3, 2)
    assert prepay(present, purses) == 1
    jobs = present.jobs[present.turn[:5]]
    assert jobs["since"].tolist() == [2, 2, 0, 0, 2] and jobs["paid"].tolist() == [2 * CREDIT, 2 * CREDIT, 0, 0, 0]
    assert purses.held.tolist() == [CREDIT, 0] and purses.spent.tolist() == [2 * CREDIT, 2 * CREDIT]


FREE = [{"start": 18, "width": 2}, {"start": 19, "width": 3}, {"start": 12, "width": 2}]


def taken_by(width=4, since=19, began=19, load=1.0, patience=5, behind=(), credits=9):
    """Return whose nodes are taken and who starts, by place, where a node is idle in round 20, and what was paid."""
    free = [FREE[0], {**FREE[1], "start": began}, FREE[2]]
    present = rows_of(*free, {"since": since, "width": width}, *behind)
    purses = purses_of(credits)
    place = {row: i for i, row in enumerate(present.turn[: present.n].tolist())}
    taken, started = serve_regular(present, 20, 1, purses, np.ones(5), load, patience)
    jobs = present.jobs[present.turn[: present.n]]
    assert all(jobs["start"][place[row]] == 0 and jobs["ran"][place[row]] == 1 for row in taken.tolist())
    assert all(jobs["start"][place[row]] == 20 for row in started.tolist())
    assert purses.spent[0] == jobs["paid"].sum() == credits * CREDIT - purses.held[0]
    found = [[place[row] for row in rows.tolist()] for rows in (taken, started)]
    return *found, int(jobs["paid"].sum()) // CREDIT, jobs["unpaid"].tolist()[3]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of the two that came last only the wider one has to go: 3 node-rounds are lost, of 1.5 x 4 that may be.
        ({}, ([1], [3], 4, 0)),
        ({"began": 18}, ([1], [3], 4, 0)),  # 6 of 6
        ({"began": 17}, ([], [], 0, 0)),  # 9
        ({"began": 17, "since": 15}, ([1], [3], 4, 0)),  # it has waited for as long as it has to
        ({"began": 17, "load": 1.1}, ([], [], 0, 0)),  # 1.5 x 1.331 x 4 are not 9
        ({"began": 17, "load": 1.2}, ([1], [3], 4, 0)),
        ({"began": 17, "load": 0.1}, ([], [], 0, 0)),
        # One of one node behind it adds 2 x 1.5, which makes 9; it starts later.
        ({"began": 17, "behind": [{"since": 19, "width": 1}], "credits": 4}, ([1], [3], 4, 0)),
        ({"began": 17, "behind": [{"since": 19, "width": 1, "start": 9}]}, ([], [], 0, 0)),
        ({"width": 1}, ([], [3], 1, 0)),  # it fits
        ({"width": 8, "since": 1}, ([2, 1, 0], [3], 8, 0)),  # all of them, the last first
        ({"width": 9, "since": 1}, ([], [], 0, 0)),  # not even with all
        ({"credits": 3, "since": 15}, ([], [], 0, 1)),  # it could take nodes, and cannot pay
        ({"credits": 3, "since": 16}, ([], [], 0, 0)),
    ],
)
def test_a_regular_job_takes_the_nodes_that_it_needs_if_little_is_lost(given, expected):
    assert taken_by(**given) == expected


def test_free_jobs_start_in_their_order_where_they_fit():
    present = rows_of(*({"width": width} for width in (1, 2, 2, 1, 1)))
    queue = present.turn[[1, 2, 3, 4, 0]]
    assert serve_free(present, 7, 3, queue).tolist() == queue[[0, 2]].tolist()
    assert present.jobs["start"][queue].tolist() == [7, 0, 7, 0, 0]
    assert serve_free(present, 7, 0, queue[:0]).size == 0


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
        SIZES["max_duration"], guests=shares.get("newcomers"),
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
