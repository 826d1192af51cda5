"""Checkpoints under credits: a run that is taken back leaves less to do, the rules know it, and lies do not pay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.credits.credits import Credits
from marketsched.mechanisms.credits.saved_work import SavedWork
from marketsched.mechanisms.law import DurationLaw
from marketsched.results.paired_statistics import spread

HORIZON = 60


def job(name, owner, birth, nodes, law, duration, deadline, value=5.0, checkpoint=None):
    points = [(birth, d, 1 / len(law), None) for d in law]
    truth = StatementOfWork(birth, nodes, DeadlineValue(value, deadline), points, checkpoint=checkpoint)
    return Job(name, owner, truth, birth, duration, None)


class Saying(TruthfulOwners):
    """Owners who report what ``said`` has of their jobs; the work keeps what is true."""

    def __init__(self, jobs, said):
        super().__init__(jobs)
        self._said = said

    def submit(self, job, market):
        market.submit(job.name, self._said.get(job.name, job.truth), job, job.truth.concurrency, owner=job.owner)


def played(jobs, capacity, said=None, **rules):
    sizes = {"max_concurrency": capacity, "max_duration": 20, "max_value": 1e3, "max_delay": HORIZON}
    market = Credits(capacity, HORIZON, owners=sorted({each.owner for each in jobs}), **sizes, **rules)
    return market, play(MarketLoop(market), Saying(jobs, said or {}), HORIZON)


def ends_of(events):
    return {event.job: (event.kind.value, event.round) for event in events if event.kind.leaves}


@settings(max_examples=many(60))
@given(
    durations=st.sets(st.integers(1, 20), min_size=1, max_size=5),
    runs=st.lists(st.integers(0, 7), min_size=1, max_size=4),
    every=st.integers(1, 5),
)
def test_the_law_of_the_rest_is_that_of_the_work_given_what_was_seen(durations, runs, every):
    days = np.array(sorted(durations))
    work, saved, seen = SavedWork(every, DurationLaw.of(days, np.arange(1.0, days.size + 1))), 0, 0
    for rounds in runs:
        seen = max(seen, saved + rounds)
        kept = max(s for s in range(rounds + 1) if s % every == 0)  # the last round in which it was saved
        assert work.keep(rounds) == kept
        saved += kept
    left = [(d - saved, weight) for d, weight in zip(days.tolist(), range(1, 10), strict=False) if d > seen]
    assert work.shortest_rest == (left[0][0] if left else 1)
    mean = sum(d * w for d, w in left) / sum(w for _, w in left) if left else 1.0
    assert work.mean_rest == pytest.approx(mean)


def urgent():
    """Bob's job comes in round 6, and takes the nodes of Ann's, which has run for five rounds."""
    return job("B", "bob", 6, 2, [3], 3, 10)


@pytest.mark.parametrize(("every", "end"), [(None, ("evict", 7)), (2, ("complete", 10)), (3, ("complete", 11))])
def test_a_job_that_saved_its_work_waits_for_as_long_as_the_rest_can_be_done(every, end):
    jobs = [job("A", "ann", 1, 2, [6], 6, 12, checkpoint=every), urgent()]
    market, events = played(jobs, 2, margin=0.0)
    assert [event.job for event in events if event.kind.value == "requeue"] == ["A"]
    assert ends_of(events)["A"] == end and ends_of(events)["B"] == ("complete", 8)
    saved = 0 if every is None else 5 // every * every
    assert market.statistics()["node_rounds_lost"] == 2 * (5 - saved)


def test_the_rest_is_what_a_regular_run_is_expected_to_cost():
    jobs = [job("A", "ann", 1, 2, [6], 6, 12, checkpoint=2), urgent()]
    market, _ = played(jobs, 2, margin=0.0)
    upgrade = next(each for each in market.upgrades if each.job == "A")
    assert upgrade.cost == pytest.approx(2 * 2.0 * market._usual.kappa, rel=0.2)  # two rounds on two nodes, not six


def drawn(seed, every):
    """Return a crowded market in which jobs are long, and are often taken back."""
    rng, jobs = np.random.default_rng(seed), []
    for i, birth in enumerate(np.sort(rng.integers(1, 30, 60)).tolist()):
        law = sorted({int(rng.integers(2, 6)), int(rng.integers(4, 13))})
        slack = int(rng.choice([1, 3, 20]))
        jobs.append(
            job(f"j{i}", f"o{int(rng.integers(4))}", birth, int(rng.integers(1, 4)), law, int(rng.choice(law)),
                birth + max(law) + slack, float(rng.lognormal(1.5)), every)
        )  # fmt: skip
    return jobs


def value_of(jobs, owner, events):
    done = {event.job: event.completion for event in events if event.kind.value == "complete"}
    return sum(float(each.truth.value(done[each.name])) for each in jobs if each.owner == owner and each.name in done)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("true", "said"), [(2, None), (None, 2), (4, 1)])
def test_to_hide_checkpoints_or_to_invent_them_does_not_pay_clearly(true, said):
    gains, changed = [], 0
    for seed in range(many(40)):
        jobs = drawn(seed, true)
        lies = {each.name: each.truth for each in drawn(seed, said) if each.owner == "o0"}
        honest, lied = (played(jobs, 4, reports)[1] for reports in ({}, lies))
        most = sum(each.truth.value.highest for each in jobs if each.owner == "o0")
        gains.append((value_of(jobs, "o0", lied) - value_of(jobs, "o0", honest)) / most)
        changed += honest != lied
    assert spread(np.array(gains)).low <= 0
    assert changed  # the lie moves something


def test_without_a_run_that_is_taken_back_checkpoints_change_nothing():
    for seed in range(6):
        plain, saving = (played(drawn(seed, every), 40)[1] for every in (None, 2))
        assert not any(event.kind.value == "requeue" for event in plain)
        assert plain == saving
