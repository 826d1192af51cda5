"""Owners in a market with the real mechanisms: what they get, and that the books balance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.agents.job import Job
from marketsched.agents.lies import (
    ScaleValue,
)
from marketsched.agents.market import Market
from marketsched.agents.owner import JobOwner
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.posted.exact_oracle import ExactOracle
from marketsched.mechanisms.posted.exponential import ExponentialPricing, PostedPricing
from marketsched.mechanisms.posted.oracle import MonteCarloOracle
from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, LinearValue


def posted(capacity, horizon, **options):
    pricing = options.pop("pricing", PostedPricing([0.0]))
    options = {"max_concurrency": 2, "max_duration": 4, "max_value": 100.0, "max_delay": 12} | options
    return PostedPriceMechanism(capacity, horizon, pricing, options.pop("oracle", ExactOracle()), **options)


def play(jobs, mechanism, capacity, **options):
    options = {"max_delay": 12} | options
    return Market(MarketSetup("test", jobs, mechanism, capacity, mechanism.horizon, **options)).run()


def sure(name, birth, arrival, duration, nodes, value=10.0, deadline=12):
    sow = StatementOfWork(birth, nodes, DeadlineValue(value, deadline), [(arrival, duration, 1.0)])
    return Job(name, "owner", sow, arrival, duration, duration)


@pytest.mark.parametrize(("deadline", "start", "expected"), [(7, 5, 10.0), (4, 2, 5.0)])
def test_estimated_utility_is_the_mean_of_what_owners_get_in_w3(deadline, start, expected):
    """Specification, W3: f(s, 2, 1) = 0, .5, 1, .5, 0 for s = 1..5, so wait until 5 if there is time."""
    law = [(2, 2, 0.5), (3, 2, 0.5)]
    utilities = []
    for arrival in (2, 3):
        # Free of charge and not in a hurry, so by the tie rule the first job starts when it arrives.
        first = Job("first", "a", StatementOfWork(1, 1, DeadlineValue(100.0, 7), law), arrival, 2, 2)
        result = play([first, sure("new", 1, 2, 1, 2, deadline=deadline)], posted(2, 6), 2)
        new = result.jobs.set_index("name").loc["new"]
        assert new.planned_start == start
        assert new.estimated_utility == pytest.approx(expected)
        utilities.append(new.utility)
    assert np.mean(utilities) == pytest.approx(expected)


@st.composite
def workloads(draw, *, faithful=False):
    """Draw up to seven jobs; unless ``faithful``, what happens may lie outside their laws."""
    jobs = []
    for i in range(draw(st.integers(1, 7))):
        birth = draw(st.integers(1, 8))
        points = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=3, unique=True))
        mass = draw(st.sampled_from([1.0, 0.75]))
        hidden = not faithful and draw(st.booleans())
        law = [(birth + wait, d, mass / len(points), None if hidden else d) for wait, d in points]
        curve = draw(
            st.one_of(
                st.builds(DeadlineValue, st.integers(1, 40).map(float), st.integers(birth, birth + 11)),
                st.builds(
                    LinearValue, st.integers(1, 40).map(float), st.just(birth), st.just(1.5), st.just(birth + 11)
                ),
            )
        )
        wait, duration = draw(st.sampled_from(points))
        arrival = draw(st.sampled_from([birth + wait, birth + wait, None]))
        if not faithful and draw(st.integers(0, 3)) == 0:
            arrival, duration = birth + draw(st.integers(0, 6)), draw(st.integers(1, 6))
        sow = StatementOfWork(birth, draw(st.integers(1, 2)), curve, law)
        jobs.append(Job(f"j{i}", "o", sow, arrival, duration, None if hidden else duration))
    return jobs


def mechanisms(kind):
    """Build a small market of 3 nodes and 16 rounds."""
    limits = {"max_concurrency": 2, "max_duration": 4, "max_value": 100.0, "max_delay": 12}
    if kind == "first-come":
        return FirstCome(3, 16, price=0.5, **limits)
    pricing = ExponentialPricing(floor=0.25, ceiling=40.0)
    oracle = ExactOracle() if kind == "exact" else MonteCarloOracle(samples=16)
    return PostedPriceMechanism(3, 16, pricing, oracle, epsilon=-1.0, threshold=0.3, rng=1, **limits)


@given(jobs=workloads(faithful=True))
def test_honest_owners_with_revealed_durations_never_regret_a_run(jobs):
    """Each launch of a plan has value > price, and the price of the menu is what is charged."""
    result = play(jobs, mechanisms("exact"), 3)
    done = result.jobs["outcome"] == "completed"
    assert (result.jobs.loc[done, "utility"] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exact", "first-come"])
@given(jobs=workloads(), resubmit=st.booleans())
def test_calendars_agree_with_a_loop_over_all_jobs(kind, jobs, resubmit):
    result = play(jobs, mechanisms(kind), 3, resubmit=resubmit)
    expected = plain_loop(jobs, mechanisms(kind), resubmit=resubmit)
    told = result.events[~result.events["event"].isin(["submit", "arrive", "close"])]
    found = list(zip(told["round"], told["event"], told["statement"], told["payment"], strict=True))
    assert found == expected


def plain_loop(jobs, mechanism, *, resubmit):
    """Play a market by asking every job in every round; honest owners."""
    statements = {job.name: (job, job.truth) for job in jobs}  # by name, in order of submission
    submitted, running, gone, story = [], {}, set(), []
    for now in range(1, mechanism.horizon + 1):
        for name, (_, sow) in statements.items():
            if sow.birth == now:
                mechanism.submit(name, sow)
                submitted.append(name)
        for name in submitted:
            job, sow = statements[name]
            if name not in gone and job.arrival is not None and max(job.arrival, sow.birth) == now:
                mechanism.arrive(name, job.signal)
        for event in mechanism.advance():
            story.append(event)
            if event.kind is EventKind.START:
                running[event.job] = event.round
                continue
            gone.add(event.job)
            running.pop(event.job, None)
            job, sow = statements[event.job]
            foreseen = any(r.arrival == job.arrival and r.signal == job.signal for r in job.truth.requirements)
            fits = job.signal is None or job.duration <= 4
            if event.kind is EventKind.DROP and resubmit and not foreseen and fits and sow is job.truth:
                again = repeated(job, now + 1)
                statements[job.name + "+"] = (job, again)
        for name in submitted:
            if name in running and running[name] + statements[name][0].duration - 1 == now:
                story.append(mechanism.complete(name))
                running.pop(name)
                gone.add(name)
    return [(event.round, str(event.kind), event.job, event.payment) for event in story]


def repeated(job, now):
    """State again, in round ``now``, a job that is there; value ends where it did."""
    if job.signal == job.duration:
        points = [(now, job.duration, 1.0)]
    else:
        mass = {}
        for r in job.truth.requirements:
            mass[r.duration] = mass.get(r.duration, 0.0) + r.probability
        points = [(now, d, p / sum(mass.values()), None) for d, p in mass.items()]
    curve = job.truth.value
    last = min(curve.deadline, job.truth.birth + 11)
    if isinstance(curve, LinearValue):
        curve = LinearValue(curve.value, curve.start, curve.slope, last)
    else:
        curve = DeadlineValue(curve.value, last)
    return StatementOfWork(now, job.truth.concurrency, curve, points)


def test_an_owner_by_itself():
    job = sure("a", 3, 4, 2, 2, value=8.0, deadline=30)
    model = Market(MarketSetup("test", [], mechanisms("exact"), 3, 16, 12))
    owner = JobOwner(model, job, 0, ScaleValue(2.0), max_delay=12)
    assert (owner.truth, owner.utility, owner.report) == (job.truth, 0.0, None)
    report = owner.declare(model.public)
    assert report is owner.report
    assert report.value == DeadlineValue(16.0, 30)
    assert [owner.worth(f) for f in (6, 14, 15)] == [8.0, 8.0, 0.0]  # 0 from birth + 12 on
    owner.observe(Event(5, EventKind.START, "a"))
    owner.observe(Event(6, EventKind.COMPLETE, "a", completion=7, payment=3.0))
    assert (owner.start, owner.value, owner.payment, owner.utility) == (5, 8.0, 3.0, 5.0)
