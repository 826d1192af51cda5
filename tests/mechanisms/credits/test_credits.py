"""Credits: what is proven of them, in drawn markets, in one where the bound is attained, and against faulty rules."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credit_markets import HORIZON, NODES, SIZES, density_of, drawn_jobs, market_of, of_density, played
from draws import many
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.credits.credits import Credits
from marketsched.mechanisms.credits.present import DONE, HERE, JOB
from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.credits.upgrades import Memory, Spans, outlook, upgraded
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.offers.present import Rows
from marketsched.mechanisms.registry import get_mechanism, promises_of
from marketsched.mechanisms.schedulers.turns import Accounts

TIGHT = {"income": 0.5, "carry_rounds": 12.0, "patience": 2}  # small purses: who is regular matters
rules = st.fixed_dictionaries(
    {
        "income": st.sampled_from([0.3, 0.5, 0.7, 1.0]),
        "carry_rounds": st.sampled_from([4.0, 20.0, 200.0]),
        "start": st.sampled_from([0.0, 0.5, 1.0]),
        "patience": st.integers(0, 6),
        "margin": st.sampled_from([0.0, 1.0, 5.0]),
    }
)


def by_rounds(market, jobs):
    """Play; yield the market after each round, with its events."""
    loop, owners = MarketLoop(market), TruthfulOwners(jobs)
    while loop.now <= market.horizon:
        owners.act(loop)
        yield loop.clear()


def violations(market):
    """Return the upgrades whose jobs waited beyond their bound."""
    found = []
    for each in market.upgrades:
        end = each.started or each.left or market.round
        if end - each.round - each.unpaid > each.bound:  # False where it is nan
            found.append(each)
    return found


@pytest.mark.slow
@settings(max_examples=many(120, least=25), deadline=None)
@given(seed=st.integers(0, 10**6), rule=rules)
def test_purses_bound_what_is_regular_and_how_long_it_waits(seed, rule):
    """P2 and P3, exact sums, and that no regular run is ever taken back."""
    jobs = drawn_jobs(seed, n=80)
    market = market_of("credits", jobs, **rule)
    purses, regular, spent, start = market.purses, [], [], market.purses.held.copy()
    for events in by_rounds(market, jobs):
        rows = market._present.jobs[market._present.turn[: market._present.n]]
        ran = {market._in_row[row].job: row for row in market._present.turn[: market._present.n].tolist()}
        taken = {e.job for e in events if e.kind.value == "requeue"}
        assert not any(
            market._present.jobs["since"][ran[job]] and not market._present.jobs["start"][ran[job]] for job in taken
        )
        nodes = np.zeros(len(market.accounts), np.int64)
        running = rows[(rows["since"] > 0) & (rows["start"] > 0)]
        np.add.at(nodes, running["owner"], running["width"])
        regular.append(nodes)
        spent.append(purses.spent.copy())
        assert (purses.held >= 0).all() and (purses.held <= np.maximum(purses.caps, start)).all()
        assert (purses.earned == purses.held + purses.spent + purses.expired).all()
        assert market.load <= NODES
    paid = np.diff(np.array([np.zeros_like(spent[0]), *spent]), axis=0)
    assert (
        paid == CREDIT * np.array(regular)
    ).all()  # a regular node and round costs one credit: so P2 is the sum of purses
    windows = np.cumsum(np.array(regular), axis=0)
    rounds = np.arange(1, len(windows) + 1)[:, None]
    assert (CREDIT * windows <= start + rounds * purses.incomes).all()
    assert not violations(market)


def saved_up(nodes=10, carry=200.0):
    """Return a market in which one owner has saved, and fills the machine in front of the job of another."""
    rush = [
        Job(f"r{i}", "saver", StatementOfWork(1, nodes, DeadlineValue(5.0, 302), [(1, 1, 1.0, None)]), 1, 1)
        for i in range(220)
    ]
    law = [(1, 1, 0.5, None), (1, 3, 0.5, None)]
    late = Job("late", "other", StatementOfWork(1, 1, DeadlineValue(5.0, 302), law), 1, 1)
    sizes = {**SIZES, "max_concurrency": nodes, "max_delay": 400}
    shares = {"saver": 996, "other": 4}
    market = Credits(
        nodes, 320, shares=shares, income=0.5, carry_rounds=carry, start=1.0, patience=0, margin=300, **sizes
    )
    return market, [*rush, late]


def test_the_bound_is_attained_when_all_is_spent_at_once():
    market, jobs = saved_up()
    played(market, jobs, 320)
    (each,) = (x for x in market.upgrades if x.job == "late")
    assert each.bound == 200.0  # 1,000 credits over (1 - .5) 10 - 1 + 1 nodes
    assert 0.98 * each.bound <= each.started - each.round <= each.bound
    shown = market.tables()["purses"]
    assert shown["incomes"].tolist() == [4.98, 0.02] and shown["spent"][1] == 1.0  # of 5 a round; a run of one round


class Unpaid(Credits):
    """A planted fault: regular runs that are under way cost nothing, so that the bound is none."""

    def advance(self):
        held, spent = self.purses.held.copy(), self.purses.spent.copy()
        events = super().advance()
        self.purses.held, self.purses.spent = np.minimum(held + self.purses.incomes, self.purses.caps), spent
        return events


def test_the_bound_breaks_where_nobody_pays():
    _, jobs = saved_up()
    free = Unpaid(10, 320, shares={"saver": 996, "other": 4}, income=0.5, carry_rounds=200.0, start=1.0, patience=0,
                  margin=300, **{**SIZES, "max_concurrency": 10, "max_delay": 400})  # fmt: skip
    played(free, jobs, 320)
    assert [each.job for each in violations(free) if each.owner == "other"] == ["late"]


def increasing(jobs, owner, rng):
    """Return the jobs with a random increasing map of one owner's importance; ties stay ties."""
    own = sorted({density_of(job) for job in jobs if job.owner == owner})
    to = dict(zip(own, np.cumsum(rng.exponential(1.0, len(own)) ** 4 + 1e-3).tolist(), strict=True))
    return [of_density(job, to[density_of(job)]) if job.owner == owner else job for job in jobs]


def state_of(market, jobs):
    events = played(market, jobs)
    return (
        events,
        [(x.job, x.round, x.cost, x.purse, x.bound, x.started) for x in market.upgrades],
        market.purses.held.tolist(),
    )


@pytest.mark.slow
def test_no_increasing_map_of_an_owner_s_values_changes_anything():
    changed = 0
    for seed in range(many(12)):
        jobs, rng = drawn_jobs(seed, n=80), np.random.default_rng(seed)
        before = state_of(market_of("credits", jobs, **TIGHT), jobs)
        for owner in ("o0", "o1"):
            mapped = increasing(jobs, owner, rng)
            assert state_of(market_of("credits", mapped, **TIGHT), mapped) == before
            turned = [of_density(job, 1 / density_of(job)) if job.owner == owner else job for job in jobs]
            changed += state_of(market_of("credits", turned, **TIGHT), turned) != before
    assert changed > many(12)  # one that falls does


def test_a_map_that_gives_worthless_jobs_a_value_is_not_one_of_those():
    jobs = [of_density(job, 0.0) if i % 3 == 0 else job for i, job in enumerate(drawn_jobs(3, n=80))]
    before = state_of(market_of("credits", jobs, **TIGHT), jobs)
    for added, same in ((0.0, True), (1.0, False)):
        mapped = [of_density(job, 2 * density_of(job) + added) if job.owner == "o0" else job for job in jobs]
        assert (state_of(market_of("credits", mapped, **TIGHT), mapped) == before) is same
    assert "with 0 at 0" in promises_of("credits")


def test_a_regular_run_is_taken_back_once_its_owner_cannot_pay():
    """Its purse is empty, so that the run is free."""
    jobs = drawn_jobs(4, n=80)
    market = market_of("credits", jobs, **TIGHT)
    events = played(market, jobs)
    regular = {x.job for x in market.upgrades if x.started}
    taken = {event.job for event in events if event.kind.value == "requeue"}
    assert taken & regular and "taken back for no other while its owner can pay" in promises_of("credits")


class Chosen(Credits):
    """Jobs become regular when a test says so, and matter to their owner as it says."""

    def __init__(self, *sizes, classes, matter, reads_present=False, **rules):
        super().__init__(*sizes, **rules)
        self.classes, self.matter, self.reads_present = classes, matter, reads_present

    def _admit(self, now):
        events = super()._admit(now)
        for row, x in self._in_row.items():
            self._present.jobs["important"][row] = self.matter[x.job]
        return events

    def _upgrade(self, now):
        for row, x in self._in_row.items():
            if not x.start and now >= self.classes.get(x.job, math.inf):
                self._present.jobs["since"][row] = self._present.jobs["since"][row] or now
        if self.reads_present:  # a planted fault: announcements of present jobs limit what others may undo
            means = self._present.jobs["mean"][list(self._in_row)]
            self._usual.rounds[:] = 0.0 if len(means) and means.mean() > 4 else 100.0


def path_of_others(job, report, jobs, classes, matter, **rules):
    """Return all events up to the one with which ``job`` leaves, and the round of that."""
    lied = [replace(each, truth=report) if each.name == job.name else each for each in jobs]
    owners = sorted({each.owner for each in jobs})
    market = Chosen(
        NODES, HORIZON, classes=classes, matter=matter, owners=owners, **TIGHT | {"patience": 50}, **SIZES, **rules
    )
    events = played(market, lied)
    left = next((e.round for e in events if e.job == job.name and e.kind.leaves), HORIZON)
    return events, left


def moved(reads_present):
    """Return in how many cases the value, law or deadline of a job moved another's path while it was there."""
    count = 0
    for seed in range(many(24)):
        jobs, rng = drawn_jobs(seed, n=50), np.random.default_rng(seed)
        classes = {job.name: job.arrival + int(rng.integers(0, 4)) for job in jobs if rng.random() < 0.5}
        matter = {job.name: float(rng.random()) for job in jobs}
        for job in rng.choice(np.array(jobs, dtype=object), 4, replace=False):
            t, value = job.arrival, job.truth.value
            points = [
                (t, int(d), p, None)
                for d, p in zip(rng.choice(np.arange(1, 13), 2, replace=False), (0.5, 0.5), strict=True)
            ]
            curve = DeadlineValue(value.value * 7, value.deadline + int(rng.integers(0, 20)))
            lie = StatementOfWork(t, job.truth.concurrency, curve, points)
            pair = [
                path_of_others(job, report, jobs, classes, matter, reads_present=reads_present)
                for report in (job.truth, lie)
            ]
            until = min(left for _, left in pair)
            one, other = ([(e.round, e.kind, e.job) for e in events if e.round < until] for events, _ in pair)
            count += one != other
    return count


@pytest.mark.slow
def test_given_classes_and_order_no_report_moves_another_s_path():
    assert moved(reads_present=False) == 0


@pytest.mark.slow
def test_a_rule_that_reads_what_present_jobs_announce_is_found():
    assert moved(reads_present=True) > 0


def test_what_the_regular_jobs_of_an_owner_still_need_is_summed_over_their_rest():
    """By hand, kappa .5: what waits needs half its mean, and what runs the rest of that, at least a round."""
    purses, memory, present = Purses(Accounts(owners=["ann", "bob"]), 8, 0.5, 20.0, 1.0), Memory(Spans()), Rows(JOB)
    memory.admit(2)
    jobs = [  # owner, width, rest, start, since, state; now is round 10
        (0, 2, 8.0, 0, 9, HERE),  # 2 nodes for 4 rounds
        (0, 3, 8.0, 8, 7, HERE),  # 3 nodes for 4 - 2
        (0, 1, 8.0, 3, 3, HERE),  # 1 node for a last round: it should be over
        (0, 1, 1.0, 0, 9, HERE),  # the same: not half a round
        (0, 4, 9.0, 0, 0, HERE),  # free
        (0, 4, 9.0, 2, 0, HERE),  # free, and runs
        (0, 4, 9.0, 0, 9, DONE),  # over
        (1, 5, 4.0, 10, 10, HERE),  # Bob's: 5 nodes for 2 rounds
    ]
    for owner, width, rest, start, since, state in jobs:
        present.enter((owner, width, 0, 1, 90, 80, rest, rest, 1.0, start, 0, 0, since, 0, 0, state, 0))
    assert [outlook(present, 10, purses, memory, 0.5, owner) for owner in (0, 1)] == [(16.0, 0.0), (10.0, 0.0)]
    # A job of 4 nodes and a mean of 14 rounds takes 28 credits; it is late 16 rounds before its deadline. Both owners
    # hold 40, of which Ann's jobs need 16 and Bob's 10.
    for owner, last in ((0, 26), (1, 26), (1, 27)):
        present.enter((owner, 4, 0, 10, last, 20, 14.0, 14.0, 1.0, 0, 0, 0, 0, 0, 0, HERE, 0))
    assert [row[1:] for row in upgraded(present, 10, purses, memory, 0.5, 0.0)] == [(28.0, 0.0)]
    assert present.jobs["since"][present.turn[: present.n]].tolist()[-3:] == [0, 10, 0]
    assert outlook(present, 10, purses, memory, 0.5, 1)[0] == 38.0


def test_a_quote_tells_how_long_free_jobs_waited():
    """Guests on one node, a round each: the k-th waits k - 1 rounds. Those that give up count as longer than any."""
    for late, within in ((0, 18), (1, None)):  # 19 of 19 waits cover 95 %; of 20 the 20th, which has no end
        law = [(1, 1, 1.0, None)]
        jobs = [Job(f"j{i}", "guest", StatementOfWork(1, 1, DeadlineValue(1.0, 60), law), 1, 1) for i in range(19)]
        jobs += [Job("late", "guest", StatementOfWork(1, 1, DeadlineValue(0.1, 4), law), 1, 1)] * late
        market = Credits(1, HORIZON, owners=["ann"], **{**SIZES, "max_concurrency": 1})
        assert market.outlook(jobs[0].truth, "guest").free_within is None  # nobody has come
        played(market, jobs, 40)
        found = market.outlook(StatementOfWork(41, 1, DeadlineValue(1.0, 60), [(41, 1, 1.0, None)]), "guest")
        assert (found.free_within, found.regular_within, found.taken) == (within, None, 0.0)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"income": 0}, "income"),
        ({"income": 1.2}, "income"),
        ({"carry_rounds": 0}, "carry_rounds"),
        ({"start": 2}, "start"),
        ({"patience": -1}, "patience"),
        ({"shares": {"ann": -1}}, "shares: ann"),
        ({"shares": {"ann": "parent"}}, "shares: ann"),
    ],
)
def test_bad_parameters_are_one_clear_error(given, place):
    with pytest.raises(InvalidParameterError, match=rf"^(mechanism 'credits': )?{place}"):
        get_mechanism("credits", capacity=NODES, horizon=HORIZON, **SIZES, **given)
