"""Checkpoints: what a run that is taken back keeps, what evictions count, and what a statement of them moves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.agents.job import Job
from marketsched.agents.lies.base import restated
from marketsched.agents.loop import MarketLoop
from marketsched.agents.market_run import MarketRun
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.agents.referee import compare_plays
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms import DeadlineValue, EventKind, StatementOfWork
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.offers.announced import report_of
from marketsched.mechanisms.offers.present import REGULAR, SPARE, Present
from marketsched.mechanisms.offers.service import serve
from marketsched.mechanisms.offers.two_offers import TwoOffers
from marketsched.mechanisms.offers.waits import Calendars
from offers_markets import Chosen, entry, left_in, played, random_jobs, sizes_of
from offers_reports import World

START, REQUEUE, COMPLETE = EventKind.START, EventKind.REQUEUE, EventKind.COMPLETE
seeds = st.integers(0, 10**6)


def saving(job, every):
    """Return a job that saves its work, and says so."""
    return replace(job, truth=restated_with(job.truth, every))


def restated_with(truth, every):
    return StatementOfWork(truth.birth, truth.concurrency, truth.value, truth.requirements, checkpoint=every)


def drawn_jobs(seed, every=(None, 1, 2, 3)):
    rng, jobs = np.random.default_rng(seed), random_jobs(seed)
    return [saving(job, every[rng.integers(len(every))]) for job in jobs]


def market_of(jobs, made=TwoOffers, **rules):
    sizes, limits = sizes_of(jobs)
    return made(*sizes, **limits, **{"counts_saved": True, **rules})


def runs_of(events):
    """Return start and first round without it of the runs of each job, and whether the last one completed."""
    runs, done = {}, {}
    for e in events:
        mine = runs.setdefault(e.job, [])
        if e.kind is START:
            mine.append([e.round, None])
        elif mine and mine[-1][1] is None:
            mine[-1][1] = e.completion if e.kind is COMPLETE else e.round
            done[e.job] = e.kind is COMPLETE
    return runs, done


@settings(max_examples=many(40), deadline=None)
@given(seed=seeds, counts_saved=st.booleans(), capacity=st.sampled_from([4, 6]))
def test_work_is_conserved(seed, counts_saved, capacity):
    """What the runs of a job that ends have saved, and its last run, are its duration; the rest is what is lost."""
    jobs = drawn_jobs(seed)
    market = market_of(jobs, counts_saved=counts_saved)
    events, _ = played(market, jobs)
    truth, (runs, done), lost = {job.name: job for job in jobs}, runs_of(events), 0
    for name, mine in runs.items():
        every, width = truth[name].truth.checkpoint, truth[name].truth.concurrency
        lengths = [end - start for start, end in mine if end is not None]
        taken = lengths[:-1] if done.get(name) else lengths
        kept = [n // every * every if every else 0 for n in taken]
        if done.get(name):
            assert sum(kept) + lengths[-1] == truth[name].duration
        back = sum(e.kind is REQUEUE for e in events if e.job == name)
        lost += width * sum(n - k for n, k in zip(taken[:back], kept[:back], strict=True))
    assert market.statistics()["node_rounds_lost"] == lost


@settings(max_examples=many(30), deadline=None)
@given(seed=seeds, counts_saved=st.booleans(), requeue=st.booleans())
def test_whole_markets_are_played_as_round_by_round(seed, counts_saved, requeue):
    jobs = tuple(drawn_jobs(seed))
    (capacity, horizon), limits = sizes_of(jobs)

    def made():
        market = TwoOffers(capacity, horizon, counts_saved=counts_saved, requeue=requeue, **limits)
        return MarketSetup("drawn", jobs, market, capacity, horizon, limits["max_delay"])

    found = compare_plays(made)
    assert found.whole and found.difference == ""
    result = MarketRun(made()).run()
    lost, used = result.outcome["lost_node_rounds"], result.rounds["load"].sum()
    done = result.jobs[result.jobs["outcome"] == "completed"]
    if requeue and not (result.jobs["outcome"] == "unfinished").any():
        assert used == (done["concurrency"] * done["duration"]).sum() + lost


@pytest.mark.slow
@settings(max_examples=many(20), deadline=None)
@given(seed=seeds)
def test_checkpoints_that_save_nothing_change_nothing(seed):
    """One further apart than any run is long; and where a run that is taken back is lost with its job."""
    jobs = random_jobs(seed)
    apart = [saving(job, 99) for job in jobs]
    assert played(market_of(jobs), jobs)[0] == played(market_of(jobs), apart)[0]
    often = [saving(job, 1) for job in jobs]
    assert played(market_of(jobs, requeue=False), jobs) == played(market_of(jobs, requeue=False), often)
    assert played(market_of(jobs, spare=False), jobs) == played(market_of(jobs, spare=False), often)


def test_the_job_pays_for_the_run_that_completes():
    law = [(1, 7, 1.0, None)]
    mine = Job("mine", "a", StatementOfWork(1, 1, DeadlineValue(90.0, 40), law, checkpoint=2), 1, 7)
    other = Job("other", "b", StatementOfWork(6, 1, DeadlineValue(90.0, 9), [(6, 2, 1.0, None)]), 6, 2)
    market = Chosen(1, 40, max_concurrency=1, max_duration=8, max_value=99.0, max_delay=40, counts_saved=True,
                    chosen={"mine": SPARE, "other": entry(REGULAR, 0)})  # fmt: skip
    market._hidden.rates.posted = (0.5, 1.0)
    events = play(MarketLoop(market), TruthfulOwners([mine, other]), 40)
    rate = 0.5 * 3 / (2 + 4)  # four of the seven rounds are saved: a run of three completes
    assert [e.payment for e in events if e.job == "mine"][-1] == pytest.approx(3 * rate)


@pytest.mark.parametrize(("every", "taken"), [(0, False), (4, True), (3, True), (5, False)])
def test_limits_count_what_would_be_lost(every, taken):
    """Nine rounds have run; a newcomer of usual work 4 may destroy 3 node-rounds: none, or one, or four of them."""
    present = Present()
    common = {"rate": 1.0, "last_start": 90, "cell": 0, "group": 0, "mean": 4.0, "density": 1.0}
    row = present.add(SPARE, 1, 0, latest=90, every=every, **common)
    present.jobs["start"][row] = 1
    present.add(REGULAR, 1, 0, latest=12, **common)
    back, started = serve(present, 10, 0, 1, np.full(5, 4.0), requeue=True)
    assert (back.tolist() == [row]) == taken == bool(started.size)


def test_calendars_see_what_is_saved():
    """Usual runs take ten rounds. One saved six and waits: four more; one has done seven: half as many more."""
    present, common = Present(), {"rate": 1.0, "last_start": 90, "cell": 0, "group": 0, "mean": 4.0, "density": 1.0}
    runs, waits = (present.add(SPARE, 1, 0, latest=90, every=3, **common) for _ in range(2))
    present.jobs["saved"][[runs, waits]], present.jobs["start"][runs] = 6, 20
    calendars = Calendars()
    calendars.fill(present, 21, 1, np.full(5, 10.0))
    assert calendars.runs.tolist() == [[1, 1, 4]] and calendars.line.tolist() == [[SPARE, 90, 1, 4, 4]]


def test_the_last_start_is_that_of_the_rest_given_what_is_known():
    law = [(1, d, 1 / 3, None) for d in (2, 5, 9)]
    sow = StatementOfWork(1, 1, DeadlineValue(20.0, 30), law, checkpoint=3)
    report = report_of(WaitingJob("", 0, sow).come(1, None, 30))
    assert report.last_start(1.0) == 28 and report.last_start(1.0, 0, 4) == 28
    assert report.last_start(1.0, 3, 4) == 28  # five in all, three saved
    assert report.last_start(1.0, 3, 5) == 24  # nine: it did not end after five
    assert report.last_start(1.0, 9, 10) == 29  # longer than announced: it may end at any time
    assert report.last_start(9.0, 3, 5) < 0  # six rounds cost 54


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=many(8), deadline=None)
@given(seed=seeds)
def test_given_entry_and_checkpoints_no_report_moves_a_path(seed):
    rng, jobs = np.random.default_rng(seed), drawn_jobs(seed)
    for place in rng.choice(len(jobs), 2, replace=False):
        job = jobs[place]
        for taken in (entry(SPARE), entry(REGULAR), entry(SPARE, 3)):
            market = {"made": Chosen, "chosen": {job.name: taken}}
            told, _ = played(market_of(jobs, **market), jobs)
            for lie in lies_about(job.truth):
                said, _ = played(market_of(jobs, **market), jobs, {job.name: lie})
                until = min(left_in(told, job.name), left_in(said, job.name))
                assert [e for e in told if e.round < until] == [e for e in said if e.round < until]


def lies_about(truth):
    """Return other values, deadlines and laws; nodes and checkpoints stay."""
    rows = [(truth.birth, d, p, None) for d, p in ((1, 0.5), (8, 0.5))]
    more = {"checkpoint": truth.checkpoint}
    return [
        restated(truth, value=DeadlineValue(900.0, truth.value.last)),
        restated(truth, value=DeadlineValue(truth.value.highest, truth.value.last + 6)),
        StatementOfWork(truth.birth, truth.concurrency, truth.value, rows, **more),
    ]


def test_where_saved_work_is_not_counted_the_truth_about_checkpoints_is_best_inside_an_entry():
    for seed in range(6):
        world = World(seed, saves=2)
        world.rules["counts_saved"], truth = False, world.job.truth
        for taken in (entry(SPARE, 3), entry(SPARE)):
            best = world.played(truth, taken)[0]
            assert all(world.played(restated(truth, checkpoint=n), taken)[0] <= best + 1e-9 for n in (0, 1, 3))


@pytest.mark.parametrize(("counts_saved", "begins"), [(True, 5), (False, 9)])
def test_where_it_is_counted_a_job_that_hides_it_keeps_its_nodes(counts_saved, begins):
    """Four rounds have run, all saved; a newcomer of usual work 4 may destroy three. The first start is the truth's."""
    law = [(1, 8, 1.0, None)]
    mine = Job("mine", "a", StatementOfWork(1, 1, DeadlineValue(90.0, 40), law, checkpoint=2), 1, 8)
    other = Job("other", "b", StatementOfWork(5, 1, DeadlineValue(90.0, 30), [(5, 2, 1.0, None)]), 5, 2)
    found = []
    for every in (2, None):
        market = Chosen(1, 40, max_concurrency=1, max_duration=8, max_value=99.0, max_delay=40,
                        counts_saved=counts_saved, chosen={"mine": SPARE, "other": REGULAR})  # fmt: skip
        events, _ = played(market, [mine, other], {"mine": restated_with(mine.truth, every)})
        found += [e.round for e in events if (e.job, e.kind) == ("other", START)]
    assert found == [begins, 9]


def test_the_work_keeps_what_is_true_and_not_what_is_said():
    """One says that it saves its work, and does not: it begins anew. One hides it: it goes on where it was."""
    ends = {}
    for has, says in ((None, None), (2, 2), (None, 2), (2, None)):
        law = [(1, 7, 1.0, None)]
        mine = Job("mine", "a", StatementOfWork(1, 1, DeadlineValue(90.0, 40), law, checkpoint=has), 1, 7)
        other = Job("other", "b", StatementOfWork(4, 1, DeadlineValue(90.0, 7), [(4, 2, 1.0, None)]), 4, 2)
        market = Chosen(1, 40, max_concurrency=1, max_duration=8, max_value=99.0, max_delay=40, counts_saved=True,
                        chosen={"mine": SPARE, "other": entry(REGULAR, 0)})  # fmt: skip
        said = {"mine": restated_with(mine.truth, says)}
        (ends[has, says],) = (e.completion for e in played(market, [mine, other], said)[0]
                              if (e.job, e.kind) == ("mine", COMPLETE))  # fmt: skip
    assert ends == {(None, None): 13, (2, 2): 11, (None, 2): 13, (2, None): 11}
