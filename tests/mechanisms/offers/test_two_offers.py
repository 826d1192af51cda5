"""Two offers: given its class nothing a job reports moves its path; what happens and is paid is as the rules say."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import (
    DeadlineValue,
    EventKind,
    InvalidReportError,
    StatementOfWork,
)
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.offers import departures
from marketsched.mechanisms.offers.patience import POSTED
from marketsched.mechanisms.offers.present import Present
from marketsched.mechanisms.offers.rates import _threshold_kernel
from marketsched.mechanisms.offers.two_offers import REGULAR, SPARE, TwoOffers
from marketsched.mechanisms.offers.waits import AHEAD, Calendars, expected_waits
from offers_markets import LAWS, Chosen, curve_of, entry, left_in, played, random_jobs, sizes_of

START, REQUEUE, EVICT, COMPLETE, DROP = (EventKind[name] for name in ("START", "REQUEUE", "EVICT", "COMPLETE", "DROP"))
PATIENCE = (0, 3, 20)  # rounds
seeds = st.integers(0, 10**6)


def market_of(jobs, made=TwoOffers, capacity=6, **rules):
    sizes, limits = sizes_of(jobs, capacity)
    return made(*sizes, **limits, **rules)


def lies_about(job, rng):
    """Yield other reports of a job: value, deadline, curve and law; the nodes stay."""
    truth, birth = job.truth, job.truth.birth
    law = [(birth, int(d), float(p), None) for d, p in zip(truth.law.durations, truth.law.probabilities, strict=True)]
    high, last = truth.value.highest, truth.value.last
    for factor in (0.1, 0.6, 3.0):
        yield StatementOfWork(birth, truth.concurrency, DeadlineValue(min(999.0, high * factor), last), law)
    for later in (-3, 5):
        moved = max(birth + 1, last + later)
        yield StatementOfWork(birth, truth.concurrency, curve_of(rng.choice(["deadline", "linear"]), high, moved), law)
    for durations, weights in LAWS:
        rows = [(birth, d, p, None) for d, p in zip(durations, weights, strict=True)]
        yield StatementOfWork(birth, truth.concurrency, truth.value, rows)


def moved_paths(made, seed, n_jobs=3, **rules):
    """Return (reports made, those that moved a path or another job while the liar was present), entries given."""
    rng = np.random.default_rng(seed)
    jobs, made_reports, moved = random_jobs(seed), 0, []
    for job in rng.choice(len(jobs), n_jobs, replace=False):
        name = jobs[job].name
        for offer, patience in itertools.product((SPARE, REGULAR), PATIENCE):
            chosen = {name: entry(offer, patience)}
            told, _ = played(market_of(jobs, made, chosen=chosen, **rules), jobs)
            for lie in lies_about(jobs[job], rng):
                said, _ = played(market_of(jobs, made, chosen=chosen, **rules), jobs, {name: lie})
                until = min(left_in(told, name), left_in(said, name))
                made_reports += 1
                before = [[e for e in events if e.round < until] for events in (told, said)]
                if before[0] != before[1]:
                    moved.append((seed, name, offer, patience))
    return made_reports, moved


@pytest.mark.long
@pytest.mark.slow
@settings(max_examples=many(8), deadline=None)
@given(seed=seeds, requeue=st.booleans())
def test_given_its_entry_no_report_moves_a_path(seed, requeue):
    reports, moved = moved_paths(Chosen, seed, n_jobs=1, requeue=requeue)
    assert reports and not moved


@settings(max_examples=many(25), deadline=None)
@given(seed=seeds, revealed=st.sampled_from([0.0, 0.4, 1.0]), requeue=st.booleans(), spare=st.booleans())
def test_what_happens_is_as_the_rules_say(seed, revealed, requeue, spare):
    jobs = random_jobs(seed, revealed=revealed)
    market = market_of(jobs, requeue=requeue, spare=spare)
    events, loads = played(market, jobs)
    assert max(loads) <= market.capacity
    truth, runs = {job.name: job for job in jobs}, {}
    for e in events:
        before = runs.setdefault(e.job, [])
        if e.kind is COMPLETE:
            worth = truth[e.job].truth.value(e.completion)
            assert 0 <= e.payment <= worth + 1e-9 and before[-1] is START
        else:
            assert e.payment == 0
        assert e.kind is not REQUEUE or (requeue and spare and before[-1] is START)
        before.append(e.kind)
    taken = market.statistics()["requeues"]
    assert taken == 0 or spare
    assert (
        (sum(e.kind is REQUEUE for e in events) == taken) if requeue else all(REQUEUE not in x for x in runs.values())
    )
    assert played(market_of(jobs, requeue=requeue, spare=spare), jobs)[0] == events


@settings(max_examples=many(25), deadline=None)
@given(seed=seeds)
def test_regular_runs_are_never_taken_back_and_what_is_booked_comes_true(seed):
    jobs = random_jobs(seed, revealed=0.2)
    market, sure = market_of(jobs), {}
    truth = {job.name: job for job in jobs}

    class Asks(TwoOffers):
        def advance(self):
            found = super().advance()
            for x in list(self._in_row.values()):
                booked = self.booked(x.job, truth[x.job].duration) if x.job in self._jobs else None
                assert booked is None or x.agreed.offer == REGULAR
                if booked is not None:
                    sure.setdefault(x.job, booked)
            return found

    market.__class__ = Asks
    events, _ = played(market, jobs)
    ends = {e.job: e for e in events if e.kind.leaves}
    for name, (start, payment) in sure.items():
        assert not any(e.kind is REQUEUE for e in events if e.job == name)
        if payment is not None:
            end = ends[name]
            assert (end.kind, end.completion, end.payment) == (COMPLETE, start + truth[name].duration, payment)
        else:
            assert name not in ends or ends[name].kind is EVICT


def utility(events, job):
    """Return what became of a job: its true value less what it paid."""
    done = [e for e in events if e.job == job.name and e.kind is COMPLETE]
    return sum(float(job.truth.value(e.completion)) - e.payment for e in done)


@settings(max_examples=many(6), deadline=None)
@given(seed=seeds)
def test_inside_an_offer_the_truth_is_best_whatever_the_run_takes(seed):
    """Value, deadline, curve and law, ex post: no belief and no law is needed."""
    jobs, rng = random_jobs(seed), np.random.default_rng(seed)
    mine = int(rng.integers(len(jobs)))
    for duration in jobs[mine].truth.law.durations.tolist():
        fated = [replace(job, duration=duration) if i == mine else job for i, job in enumerate(jobs)]
        name = fated[mine].name
        for offer in (SPARE, REGULAR):
            market = market_of(fated, Chosen, chosen={name: offer})
            told = utility(played(market, fated)[0], fated[mine])
            if market.values[name][entry(offer)] <= 1e-12:
                continue  # no run of it brings what it costs: the truth takes no such offer
            for lie in lies_about(fated[mine], rng):
                said = played(market_of(fated, Chosen, chosen={name: offer}), fated, {name: lie})[0]
                assert utility(said, fated[mine]) <= told + 1e-9


LIMITS = {"max_concurrency": 2, "max_duration": 9, "max_value": 99.0, "max_delay": 30}


# -- small examples ----------------------------------------------------------------------------------------


def job(birth, nodes, value, last, *durations):
    return StatementOfWork(
        birth, nodes, DeadlineValue(value, last), [(birth, d, 1 / len(durations), None) for d in durations]
    )


def stepped(market, rounds, submitted, done=()):
    """Play by hand: reports by round, and completions ``(round cleared, job)``."""
    events = []
    for now in range(market.round, rounds + 1):
        for name, sow in submitted.get(now, {}).items():
            market.submit(name, sow)
        for name in submitted.get(now, {}):
            market.arrive(name)
        events += market.advance()
        events += [market.complete(name) for when, name in done if when == now]
    return [(e.round, e.kind.value, e.job) for e in events]


def test_a_regular_job_takes_the_nodes_of_a_spare_run_and_the_job_starts_again():
    market = Chosen(2, 30, **LIMITS, chosen={"A": 0, "B": 1})
    reports = {1: {"A": job(1, 2, 50.0, 20, 6)}, 2: {"B": job(2, 1, 50.0, 20, 3)}}
    events = stepped(market, 12, reports, [(4, "B"), (10, "A")])
    assert events == [
        (1, "start", "A"), (2, "requeue", "A"), (2, "start", "B"), (4, "complete", "B"), (5, "start", "A"),
        (10, "complete", "A"),
    ]  # fmt: skip
    assert market.statistics()["node_rounds_lost"] == 2


def test_an_eviction_that_costs_too_much_is_not_made():
    """Usual are 4 rounds: a job of one node may cost .75 x 4 node-rounds, not 2 x 2."""
    market = Chosen(2, 30, **LIMITS, chosen={"A": 0, "B": 1})
    reports = {1: {"A": job(1, 2, 50.0, 20, 6)}, 3: {"B": job(3, 1, 50.0, 20, 3)}}
    assert stepped(market, 6, reports) == [(1, "start", "A")]


def test_of_spare_runs_that_would_do_the_one_that_began_last_is_taken():
    """A arrives before B and starts after it; C needs one node and takes it from A, which has less to lose."""
    market = Chosen(2, 30, **LIMITS, chosen={"X": 1, "Y": 1, "A": 0, "B": entry(0, 5), "C": 1})
    reports = {1: {"X": job(1, 1, 50.0, 20, 2), "Y": job(1, 1, 50.0, 20, 3), "A": job(1, 1, 50.0, 25, 6)}}
    reports |= {2: {"B": job(2, 1, 50.0, 25, 6)}, 5: {"C": job(5, 1, 50.0, 25, 3)}}
    assert stepped(market, 5, reports, [(2, "X"), (3, "Y")])[4:] == [
        (3, "complete", "Y"), (4, "start", "A"), (5, "requeue", "A"), (5, "start", "C"),
    ]  # fmt: skip


def test_two_regular_jobs_that_wait_cost_no_more_than_each_by_itself():
    """Together they would need what A has done; each alone may not cost it."""
    market = Chosen(2, 30, **LIMITS, chosen={"A": 0, "B": 1, "C": 1})
    reports = {1: {"A": job(1, 2, 50.0, 20, 6)}, 5: {"B": job(5, 1, 50.0, 20, 3), "C": job(5, 1, 50.0, 20, 3)}}
    assert stepped(market, 5, reports)[1:] == []


def test_who_is_less_patient_goes_first_and_who_waited_as_long_as_agreed_leaves():
    """B arrives first and is the most patient; C and E agree to wait until round 6, D until 7, in which it starts."""
    chosen = {"A": 1, "B": entry(1, 12), "C": entry(1, 4), "D": entry(1, 5), "E": entry(1, 4)}
    market = Chosen(1, 40, **LIMITS | {"max_concurrency": 1}, chosen=chosen)
    reports = {1: {"A": job(1, 1, 50.0, 30, 3)}, 2: {name: job(2, 1, 50.0, 30, 3) for name in "BCDE"}}
    assert stepped(market, 10, reports, [(3, "A"), (6, "C"), (9, "D")]) == [
        (1, "start", "A"), (3, "complete", "A"), (4, "start", "C"), (6, "complete", "C"), (7, "drop", "E"),
        (7, "start", "D"), (9, "complete", "D"), (10, "start", "B"),
    ]  # fmt: skip


@pytest.mark.parametrize(("patience", "takes"), [(28, True), (32, False)])
def test_a_spare_job_takes_spare_nodes_only_from_who_is_much_more_patient(patience, takes):
    """A may start until round 65: more than 32 rounds behind round 30, not behind round 34."""
    market = Chosen(2, 60, **LIMITS | {"max_delay": 50}, chosen={"A": entry(0, 64), "B": entry(0, patience)})
    reports = {1: {"A": job(1, 2, 50.0, 40, 6)}, 2: {"B": job(2, 1, 50.0, 40, 3)}}
    assert stepped(market, 2, reports)[1:] == ([(2, "requeue", "A"), (2, "start", "B")] if takes else [])


def test_the_price_of_patience_is_locked_with_the_rate():
    market = Chosen(3, 40, **LIMITS, chosen={"A": entry(1, 0), "B": entry(1, 4), "C": entry(0, 20)})
    market._hidden.rates.posted = (0.1, 0.5)
    for name in "ABC":
        market.submit(name, job(1, 1, 50.0, 30, 2))
    for name in "ABC":
        market.arrive(name)
    market.advance()
    market._hidden.rates.posted = (9.0, 9.0)
    market.advance()
    paid = [market.complete(name).payment for name in "ABC"]
    assert paid == pytest.approx([1.5 * 0.5 * 2, 0.5 * 2, 0.5 * 0.1 * 2])  # usual are 4 rounds


@pytest.mark.parametrize(("stated", "taken"), [(0, 0), (5, 5), (17, 16), (90, 88), (900, 724)])
def test_a_patience_that_is_stated_is_the_only_one_on_offer(stated, taken):
    """The largest posted one up to it, whatever the deadline allows: here 26 rounds."""
    market = Chosen(1, 60, **LIMITS | {"max_concurrency": 1})
    law = [(1, 2, 1.0, None)]
    plain, patient = (StatementOfWork(1, 1, DeadlineValue(50.0, 30), law, patience=each) for each in (None, stated))
    for name, report in (("A", patient), ("B", plain)):
        market.submit(name, report)
    for name in "AB":
        market.arrive(name)
    market.advance()
    assert POSTED[market.taken["A"][1]] == taken and np.flatnonzero(market.values["A"][0]).tolist() == [
        market.taken["A"][1]
    ]
    assert np.flatnonzero(market.values["B"][1]).max() == np.searchsorted(POSTED, 26, side="right") - 1
    with pytest.raises(InvalidReportError, match="patience"):
        StatementOfWork(1, 1, DeadlineValue(50.0, 30), law, patience=-1)


def test_where_no_patience_is_sold_a_stated_one_changes_nothing():
    jobs = random_jobs(5)
    stated = [replace(job, truth=patient(job.truth, i % 4)) for i, job in enumerate(jobs)]
    assert played(market_of(jobs, spare=False), jobs) == played(market_of(jobs, spare=False), stated)
    assert played(market_of(jobs), jobs) != played(market_of(jobs), stated)


def patient(truth, patience):
    """Return a statement of work that says how long the job agrees to wait."""
    made = StatementOfWork(truth.birth, truth.concurrency, truth.value, truth.requirements, patience=patience)
    assert made != truth and pickle.loads(pickle.dumps(made)) == made and made.moved(9, made.value).patience == patience
    return made


def test_of_equal_entries_the_most_patient_is_taken_then_the_spare_one():
    market = Chosen(1, 40, **LIMITS | {"max_concurrency": 1})
    x = WaitingJob("A", 0, job(1, 1, 50.0, 30, 2)).come(1, None, 30)
    assert market._preferred(x, np.array([[1.0, 2.0, 2.0, 0.0], [2.0, 2.0, 2.0, 0.0]])) == (SPARE, 2)
    assert market._preferred(x, np.array([[1.0, 2.0, 1.0], [2.0, 2.0, 2.0]])) == (REGULAR, 2)
    assert market._preferred(x, np.zeros((2, 3))) is None


def waits_by_definition(present, now, capacity, usual, mine):
    """Return the expected wait of a job in each class by placing all who stand before it, one after the other."""
    width, mean, latest, most_lost = mine
    rows, found = [present.jobs[row] for row in present.turn[: present.n]], []
    calendars = {k: np.full(AHEAD, capacity) for k in (SPARE, REGULAR)}
    stays = np.zeros(AHEAD, int)

    def fit(free, nodes, rounds):
        windows = (all(free[t : t + rounds] >= nodes) for t in range(AHEAD - rounds + 1))
        return next((t for t, fits in enumerate(windows) if fits), AHEAD)

    for x in rows:
        if x["start"]:
            age = now - x["start"]
            left = slice(0, max(1, int(max(1.0, age / 2, usual[x["band"]] - age) + 0.5)))
            calendars[SPARE][left] -= x["width"]
            if x["offer"] == REGULAR:
                calendars[REGULAR][left] -= x["width"]
            elif x["width"] * age > most_lost:
                stays[left] += x["width"]
    for k in (REGULAR, SPARE):
        before = [x for x in rows if x["offer"] == k and not x["start"]]
        for x in sorted(before, key=lambda x: x["latest"]):
            if x["latest"] > latest and k == REGULAR and len(found) == 0:
                found.append(fit(calendars[k] - stays, width, mean))
            if x["latest"] > latest and k == SPARE:
                break
            rounds = max(1, int(usual[x["band"]] + 0.5))
            begin = fit(calendars[k], x["width"], rounds)
            for each in (calendars[SPARE], calendars[k])[: 1 if k == SPARE else 2]:
                each[begin : begin + rounds] -= x["width"]
        if len(found) == (0 if k == REGULAR else 1):
            found.append(fit(calendars[k] - (stays if k == REGULAR else 0), width, mean))
    return found[::-1]


@settings(max_examples=many(60), deadline=None)
@given(seed=seeds)
def test_waits_of_all_entries_are_those_of_placing_who_stands_before(seed):
    rng, now, capacity = np.random.default_rng(seed), 30, 6
    present, usual, busy = Present(), rng.uniform(1, 6, 5), 0
    bands = rng.integers(5, size=capacity + 1)  # jobs of one width are of one band
    for _ in range(int(rng.integers(0, 9))):
        width, offer = int(rng.integers(1, capacity + 1)), int(rng.integers(2))
        latest = now + int(rng.choice(POSTED[:20]))
        row = present.add(offer, width, int(bands[width]), latest=latest, last_start=99, cell=0, group=0,
                          mean=1.0, density=1.0, rate=1.0)  # fmt: skip
        if busy + width <= capacity and rng.random() < 0.6:
            present.jobs["start"][row], busy = int(rng.integers(20, now + 1)), busy + width
    calendars = Calendars()
    calendars.fill(present, now, capacity, usual)
    width, mean, most_lost = int(rng.integers(1, capacity + 1)), int(rng.integers(1, 6)), float(rng.uniform(0, 30))
    found = expected_waits(*vars(calendars).values(), now + POSTED, width, mean, most_lost)
    for p in range(0, POSTED.size, 3):
        mine = (width, mean, now + POSTED[p], most_lost)
        assert found[:, p].tolist() == waits_by_definition(present, now, capacity, usual, mine)


@pytest.mark.parametrize(("after", "hopeful"), [(1, True), (2, False)])
def test_a_regular_offer_that_seems_too_late_is_tried_once_enough_jobs_have_left(monkeypatch, after, hopeful):
    """A is expected to run for four rounds and takes one; as a spare job B stands behind C, and is too late."""
    monkeypatch.setattr(departures, "LATE_AFTER", after)
    market = Chosen(2, 30, **LIMITS, chosen={"first": 1, "A": entry(1, 0), "C": entry(0, 0)})
    late = {"A": job(3, 1, 50.0, 22, 4), "C": job(3, 2, 50.0, 22, 6), "B": job(3, 2, 50.0, 5, 1)}
    reports = {1: {"first": job(1, 1, 50.0, 20, 4)}, 3: late}
    events = stepped(market, 4, reports, [(1, "first"), (3, "A"), (4, "B")])[2:]
    assert (market.values["B"][SPARE].max() < market.values["B"][REGULAR].max()) == hopeful
    assert (market.taken["B"][0] == REGULAR) == hopeful
    then = [(4, "drop", "C"), (4, "start", "B"), (4, "complete", "B")]
    assert events == [(3, "start", "A"), (3, "complete", "A"), *then]


def test_what_was_seen_of_late_jobs_stays_when_their_odds_begin_again():
    """As if the odds had begun there: the prior fades as ever, and what was seen is added."""
    seen, prior = [1, 0, 0, 1, 1, 1, 0, 1, 0], departures.PRIOR_WEIGHT
    learnt = departures.Learnt(0.6)
    happened, left = prior * 0.6, prior
    for x in seen:
        learnt.odds[REGULAR, 6] = 0.98 * learnt.odds[REGULAR, 6] + (x, 1.0)
        happened, left = 0.98 * happened + x, 0.98 * left + 1.0
    before = learnt.odds.copy()
    learnt._let_late_ones_try()
    assert learnt.odds[REGULAR, 6] == pytest.approx([happened, left], rel=1e-12)
    assert learnt.odds[REGULAR, 0] == pytest.approx([0.6 * prior, prior])
    before[REGULAR, ::6] = learnt.odds[REGULAR, ::6]
    assert np.array_equal(before, learnt.odds)


def test_what_is_lost_leaves_where_there_is_no_requeue():
    market = Chosen(2, 30, **LIMITS, requeue=False,
                    chosen={"A": 0, "B": 1})  # fmt: skip
    reports = {1: {"A": job(1, 2, 50.0, 20, 6)}, 2: {"B": job(2, 1, 50.0, 20, 3)}}
    assert stepped(market, 4, reports)[1:] == [(2, "evict", "A"), (2, "start", "B")]


def test_a_run_is_stopped_at_its_deadline_and_a_job_that_can_make_it_no_more_leaves():
    market = Chosen(1, 30, **LIMITS | {"max_concurrency": 1}, chosen={"A": 1, "B": 1})
    reports = {1: {"A": job(1, 1, 50.0, 5, 2), "B": job(1, 1, 50.0, 6, 3)}}
    assert stepped(market, 6, reports) == [(1, "start", "A"), (4, "drop", "B"), (5, "evict", "A")]


def test_a_run_is_stopped_when_it_has_cost_what_it_is_worth():
    market = TwoOffers(1, 40, max_concurrency=1, max_duration=20, max_value=99.0, max_delay=40)
    market._hidden.rates.posted = (0.8, 4.0)
    reports = {1: {"A": job(1, 1, 7.0, 30, 2)}}
    events = stepped(market, 20, reports)
    rate = 0.4  # spare and patient, half of .8, brings 7 - .8, and regular 7 - 4
    assert events == [(1, "start", "A"), (1 + int(7.0 / rate), "evict", "A")]


@settings(max_examples=many(12), deadline=None)
@given(seed=seeds)
def test_a_job_that_cannot_restart_is_offered_regular_nodes_alone(seed):
    jobs, rng = random_jobs(seed), np.random.default_rng(seed)
    alone = {job.name for job in jobs if rng.random() < 0.4}
    jobs = [replace(job, truth=once(job.truth)) if job.name in alone else job for job in jobs]
    market, took = market_of(jobs), {}
    preferred = market._preferred
    market._preferred = lambda x, values: took.setdefault(x.job, (preferred(x, values), values))[0]
    events, _ = played(market, jobs)
    for name, (taken, values) in took.items():
        best = values[REGULAR].max() if name in alone else values.max()
        assert (taken is None) == (best <= 1e-12) and (taken is None or values[taken] == best)
        assert taken is None or taken[0] != SPARE or name not in alone
    assert not [e for e in events if e.kind is REQUEUE and e.job in alone]


def once(truth):
    """Return a statement of work that cannot restart."""
    made = StatementOfWork(truth.birth, truth.concurrency, truth.value, truth.requirements, restarts=False)
    assert made != truth and pickle.loads(pickle.dumps(made)) == made and made.moved(9, made.value).restarts is False
    return made


@given(
    st.lists(st.tuples(st.floats(0, 1e6) | st.just(3.0), st.floats(0.1, 99)), min_size=1, max_size=40),
    st.floats(0, 1.2),
    st.randoms(use_true_random=False),
)
def test_thresholds_are_those_of_sorting_anew(remembered, share, random):
    densities, works = np.array(remembered).T.copy()
    order = list(range(densities.size))
    random.shuffle(order)
    found = _threshold_kernel(densities, works, np.array(order), share * works.sum(), 0.2, 0.45)
    by_density = np.argsort(-densities, kind="stable")
    above = np.flatnonzero(np.cumsum(works[by_density]) > share * works.sum())
    expected = densities[by_density[above[0] if above.size else -1]]
    assert found == (expected, np.quantile(densities, 0.2), np.quantile(densities, 0.45))
