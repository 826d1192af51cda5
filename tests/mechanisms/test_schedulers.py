"""Schedulers without prices: their defining properties, against brute force and references written independently."""

from itertools import product

import numpy as np
import pytest

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get_mechanism

NODES, HORIZON, LONGEST = 5, 60, 6
LIMITS = {"max_concurrency": NODES, "max_duration": LONGEST, "max_value": 1e6, "max_delay": HORIZON}


def job(name, arrival, nodes, announced, real=None, value=10.0, deadline=HORIZON - 1, owner="anybody", revealed=False):
    truth = StatementOfWork.from_arrays(
        arrival, nodes, DeadlineValue(value, deadline), [arrival], [announced], [1.0], revealed=revealed
    )
    real = announced if real is None else real
    return Job(str(name), owner, truth, arrival, real, real if revealed else None)


def drawn_jobs(seed, n=9, last=6, revealed=False, exact=False):
    """Return tiny jobs: they may take less than announced, and many come at once."""
    rng, jobs = np.random.default_rng(seed), []
    for i, arrival in enumerate(np.sort(rng.integers(1, last + 1, n)).tolist()):
        announced = int(rng.integers(1, LONGEST + 1))
        real = announced if exact else int(rng.integers(1, announced + 1))
        value, deadline = float(rng.integers(1, 50)), arrival + int(rng.integers(8, 40))
        width = int(rng.integers(1, NODES + 1))
        jobs.append(job(i, arrival, width, announced, real, value, deadline, f"o{i % 3}", revealed))
    return jobs


def events_of(name, jobs, **parameters):
    market = MarketLoop(get_mechanism(name, capacity=NODES, horizon=HORIZON, **LIMITS, **parameters))
    return play(market, TruthfulOwners(jobs), HORIZON)


def starts_of(events):
    return {event.job: event.round for event in events if event.kind.value == "start"}


def earliest(nodes, running, now):
    """Return the first round in which so many nodes are free: every round is looked at."""
    at = now
    while NODES - sum(width for end, width in running if end > at) < nodes:
        at += 1
    return at


def by_brute_force(jobs, place=lambda each: 0):
    """EASY as it is defined: of all sets of jobs that may start, the one that puts who came first first.

    A set is legal if its jobs fit and the head's earliest start, everybody else's wall times given, stays. The queue
    is sorted by ``place``, equal ones by arrival.
    Returns starts, and for each job the reservations it had while it was the head.
    """
    waiting, running, starts, reservations = [], [], {}, {}
    for now in range(1, HORIZON + 1):
        running = [each for each in running if each[2] > now]  # who really ended is gone
        waiting += [each for each in jobs if each.arrival == now]
        waiting.sort(key=place)
        plan = [(end, width) for end, width, _ in running]

        def begin(each, now=now, running=running, plan=plan):
            starts[each.name] = now
            running.append((now + int(each.truth.law.durations[0]), each.truth.concurrency, now + each.duration))
            plan.append(running[-1][:2])

        while waiting and earliest(waiting[0].truth.concurrency, plan, now) == now:
            begin(waiting.pop(0))
        if not waiting:
            continue
        head, others = waiting[0], waiting[1:]
        reserved = earliest(head.truth.concurrency, plan, now)
        reservations.setdefault(head.name, []).append(reserved)
        for chosen in product((True, False), repeat=len(others)):  # who came first is first to be in
            own = [each for each, taken in zip(others, chosen, strict=True) if taken]
            extra = [(now + int(each.truth.law.durations[0]), each.truth.concurrency) for each in own]
            fits = sum(w for end, w in plan + extra if end > now) <= NODES
            if fits and earliest(head.truth.concurrency, plan + extra, now) <= reserved:
                break
        for each in own:
            begin(each)
        waiting = [head, *(each for each in others if each not in own)]
    return starts, reservations


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("part", range(3))
def test_easy_backfilling_is_the_best_legal_set_and_delays_no_reservation(part):
    passed = 0
    for seed in range(100 * part, 100 * part + 100):
        jobs = drawn_jobs(seed)
        found = starts_of(events_of("easy-backfill", jobs, drop_hopeless=False, stop_at_deadline=False))
        expected, reservations = by_brute_force(jobs)
        assert found == expected, seed
        for name, promised in reservations.items():
            assert found[name] <= promised[0] and promised == sorted(promised, reverse=True), seed
        order = [each.name for each in jobs]
        passed += sum(found[a] > found[b] for i, a in enumerate(order) for b in order[i + 1 :])
    assert passed > 100  # there was backfilling to be tested


def wall_of(each):
    return int(each.truth.law.durations[0])


def class_by_definition(each, jobs):
    """Return 2 in the shortest third of the wall times that came in earlier rounds, 0 in the longest; 1 at first."""
    earlier = [wall_of(other) for other in jobs if other.arrival < each.arrival]
    rank = sum(wall < wall_of(each) for wall in earlier) + sum(wall == wall_of(each) for wall in earlier) / 2
    return 1 if not earlier else 2 if 3 * rank < len(earlier) else 1 if 3 * rank < 2 * len(earlier) else 0


@pytest.mark.slow
def test_queues_in_other_orders_backfill_by_the_same_definition():
    """Shortest request first, classes by thirds, and known classes; each order changes many starts."""
    moved = dict.fromkeys(("request", "class", "known"), 0)
    for seed in range(100):
        jobs, rng = drawn_jobs(seed), np.random.default_rng(seed)
        known = {each.name: int(rng.integers(0, 3)) for each in jobs}
        places = {
            "request": ({"order": "request"}, wall_of),
            "class": ({"order": "class"}, lambda each, jobs=jobs: -class_by_definition(each, jobs)),
            "known": ({"order": "class", "classes": known}, lambda each, known=known: -known[each.name]),
        }
        by_arrival = by_brute_force(jobs)[0]
        for name, (parameters, place) in places.items():
            found = starts_of(
                events_of("easy-backfill", jobs, drop_hopeless=False, stop_at_deadline=False, **parameters)
            )
            expected = by_brute_force(jobs, place)[0]
            assert found == expected, (seed, name)
            moved[name] += expected != by_arrival
    assert min(moved.values()) > 30


def test_a_class_is_a_whole_number():
    with pytest.raises(InvalidParameterError, match=r"classes: a = -1: expected a whole number >= 0"):
        events_of("easy-backfill", [], order="class", classes={"a": -1})


def reserving(jobs, reserve):
    """Return the starts by arrival if so many who do not fit reserve nodes ahead; -1: nobody passes them."""
    waiting, running, starts = [], [], {}
    for now in range(1, HORIZON + 1):
        running = [each for each in running if each[2] > now]
        waiting += [each for each in jobs if each.arrival == now]
        busy, left, begun = np.zeros(9 * HORIZON, int), reserve, []  # far beyond all that can be reserved
        for wall_end, width, _ in running:
            busy[now : max(wall_end, now + 1)] += width
        for each in waiting:
            width, wall = each.truth.concurrency, wall_of(each)
            first = next(t for t in range(now, 8 * HORIZON) if (busy[t : t + wall] + width <= NODES).all())
            if first == now:
                begun.append(each)
                running.append((now + wall, width, now + each.duration))
                starts[each.name] = now
            elif left < 0:
                break
            if first == now or left > 0:
                busy[first : first + wall] += width
                left -= first > now
        waiting = [each for each in waiting if each not in begun]
    return starts


DEPTHS = {"none": 0, "head": 1, 2: 2, "all": 10**6, "strict": -1}


@pytest.mark.slow_after(20)
@pytest.mark.parametrize("seed", range(40))
def test_so_many_who_do_not_fit_reserve_nodes(seed):
    jobs, rules = drawn_jobs(seed, n=14), {"drop_hopeless": False, "stop_at_deadline": False}
    for reserve, depth in DEPTHS.items():
        assert starts_of(events_of("easy-backfill", jobs, reserve=reserve, **rules)) == reserving(jobs, depth), reserve
    assert events_of("conservative-backfill", jobs) == events_of("easy-backfill", jobs, reserve="all")


def overtaken(jobs, events):
    """Return by job the rounds of its wait in which it would fit if no later arrival ran."""
    come = {each.name: (each.arrival, i) for i, each in enumerate(jobs)}
    width = {each.name: each.truth.concurrency for each in jobs}
    begin, end = starts_of(events), dict.fromkeys(come, HORIZON + 1)
    end |= {e.job: e.round + (e.kind.value == "complete") for e in events if e.kind.leaves}
    rounds = dict.fromkeys(come, 0)
    for each in jobs:
        for now in range(each.arrival, begin.get(each.name, end[each.name])):
            runs = [job for job, start in begin.items() if start <= now < end[job]]
            earlier = sum(width[job] for job in runs if come[job] < come[each.name])
            rounds[each.name] += earlier + width[each.name] <= NODES < sum(map(width.get, runs)) + width[each.name]
    return rounds


@pytest.mark.parametrize(
    ("name", "rules"), [("easy-backfill", {"reserve": "none"}), ("fair-turns", {}), ("fair-share", {})]
)
def test_nobody_is_overtaken_for_longer_than_the_bound_and_the_longest_run(name, rules):
    """An hour is two rounds; of rules that overtake for longer."""
    rules = rules | {"drop_hopeless": False, "kill": False, "round_seconds": 1800.0}
    if name == "fair-turns":
        rules["owners"] = ["o0", "o1", "o2"]
    without, bound = 0, 2 + LONGEST
    for seed in range(30):
        jobs = drawn_jobs(seed, n=40, last=40)
        without += max(overtaken(jobs, events_of(name, jobs, **rules)).values()) >= bound
        assert max(overtaken(jobs, events_of(name, jobs, most_overtaken=1.0, **rules)).values()) < bound, seed
    assert without > 3


def test_a_depth_is_a_name_or_a_number():
    with pytest.raises(InvalidParameterError, match=r"reserve = -1: expected .*'strict' or a whole number >= 0"):
        events_of("fair-share", [], reserve=-1)


@pytest.mark.parametrize("name", ["easy-backfill", "conservative-backfill", "fair-share"])
def test_a_job_is_killed_at_its_wall_time(name):
    jobs = [job("A", 1, 5, 2, real=4)]
    rules = [{"grace": 0}, {"grace": 1}, {"grace": 2}, {}, {"kill": False}]
    ends = [[(e.kind.value, e.round) for e in events_of(name, jobs, **{"kill": True} | each)][1] for each in rules]
    assert ends == [("evict", 3), ("evict", 4), ("complete", 4), ("evict", 4), ("complete", 4)]
    late = [job("A", 1, 5, 4), job("B", 1, 1, 3, deadline=6)]
    rules = {"drop_hopeless": False, "stop_at_deadline": False}
    found = {k: [e.kind.value for e in events_of(name, late, **dict(list(rules.items())[:k]))] for k in (0, 1, 2)}
    assert "drop" in found[0] and found[2].count("complete") == 2
    assert sorted(found[1]) == ["complete", "evict", "start", "start"]  # B is stopped when it is worth nothing


def priorities_of(market, *names):
    waiting = [x for x in market._jobs.values() if x.job in names]
    return dict(zip([x.job for x in waiting], market.priorities(waiting).tolist(), strict=True))


def test_fair_share_by_hand():
    """Ann has used 8 node-rounds, Bob 2: with two owners 2^(-0.8 x 2) against 2^(-0.2 x 2); age and size add."""
    parameters = {"half_life_hours": 1e9, "round_seconds": 3600.0, "max_age_hours": 10.0, "weight_size": 0.0}
    market = get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, **parameters)
    jobs = [job("a", 1, 4, 2, owner="ann"), job("b", 1, 1, 2, owner="bob")]
    jobs += [job("a2", 1, 5, 1, owner="ann"), job("b2", 2, 5, 1, owner="bob")]
    loop = MarketLoop(market)
    owners = TruthfulOwners(jobs)
    assert starts_of(play(loop, owners, HORIZON)) == {"a": 1, "b": 1, "b2": 3, "a2": 4}
    market = get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, **parameters)
    loop = MarketLoop(market)
    play(loop, TruthfulOwners(jobs), 2)
    first = priorities_of(market, "a2", "b2")
    assert first == {"a2": int(1000 * 0.2 + 10_000 * 2**-1.6), "b2": int(1000 * 0.1 + 10_000 * 2**-0.4)}
    ranked = get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, **parameters, rule="fair-tree")
    play(MarketLoop(ranked), TruthfulOwners(jobs), 2)
    first = priorities_of(ranked, "a2", "b2")
    assert first == {"a2": 200 + 5000, "b2": 100 + 10_000}


def test_qos_and_accounts_of_fair_share():
    """Ann's QOS costs twice and adds 500 of 500; Bob is in an account that has the same shares as Ann alone."""
    parameters = {
        "shares": {"lab/": 1, "lab/bob": 1, "ann": 1},
        "newcomers": "lab/",
        "qos": {"ann": {"priority": 4, "usage_factor": 2}, "bob": {"priority": 2}},
        "weight_qos": 500.0,
        "weight_age": 0.0,
        "weight_size": 0.0,
        "half_life_hours": 1e9,
        "rule": "fair-tree",
    }
    market = get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, **parameters)
    jobs = [job("a", 1, 1, 6, owner="ann"), job("b", 1, 3, 6, owner="bob"), job("e", 2, 5, 1, owner="eve")]
    jobs += [job(f"{name[0]}2", 2, 5, 1, owner=name) for name in ("ann", "bob")]
    play(MarketLoop(market), TruthfulOwners(jobs), 2)
    assert market.usage == pytest.approx({"ann": 4.0, "bob": 6.0, "eve": 0.0})
    found = priorities_of(market, "a2", "b2", "e")
    # Ann is before the lab (2 of 5 used, shares equal); in the lab Eve, a newcomer there, is before Bob.
    assert found == {"a2": 10_500, "e": 6666, "b2": 3333 + 250}
    for wrong in ({"ann": {"weight": 1}}, {"ann": 3}):
        with pytest.raises(InvalidParameterError, match=r"qos: ann = .*: expected some of priority, usage_factor"):
            get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, qos=wrong)


def test_usage_is_forgotten_by_halves():
    """After a half-life of an hour, 12 rounds, what was used counts half: a fresh owner is ahead, then an equal one."""
    market = get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, half_life_hours=1.0)
    loop = MarketLoop(market)
    play(loop, TruthfulOwners([job("a", 1, 4, 1, owner="ann")]), 1)
    assert market.usage["ann"] == pytest.approx(4.0)
    for _ in range(12):
        loop.clear()
    assert market.usage["ann"] == pytest.approx(4.0 * (1 - 0.693 / 3600) ** 3600)  # Slurm's .693 for ln 2
    fast = get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, half_life_hours=1e-90)
    loop = MarketLoop(fast)
    play(loop, TruthfulOwners([job("a", 1, 4, 6, owner="ann")]), 5)
    assert fast.usage["ann"] == pytest.approx(4.0)  # what was used before this round is forgotten
    with pytest.raises(InvalidParameterError, match="half_life_hours = 0: expected a finite number > 0"):
        get_mechanism("fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, half_life_hours=0)


def test_the_largest_value_comes_first_and_displaces_what_is_worth_half():
    """B is worth three times A per node-round: A starts anew behind it; at a ratio of 1.6, or once too often, not."""
    jobs = [job("A", 1, 5, 4, value=20.0), job("B", 2, 5, 2, value=30.0, deadline=4), job("C", 1, 5, 1, value=1.0)]
    assert starts_of(events_of("largest-value-first", jobs, ratio=1.5)) == {"A": 4, "B": 2, "C": 8}
    taken = [e.job for e in events_of("largest-value-first", jobs, ratio=1.5) if e.kind.value == "requeue"]
    assert taken == ["A"]
    for parameters in ({"ratio": 1.6}, {"preempt": False}, {"ratio": 1.5, "most_preemptions": 0}):
        assert starts_of(events_of("largest-value-first", jobs, **parameters)) == {"A": 1, "C": 5}


def test_what_is_reserved_is_charged_by_reservation():
    """Ann asked for 5 rounds and ran 2 on 2 nodes: she is charged for 4 node-rounds, or for all 10 once she is done."""
    jobs = [job("a", 1, 2, 5, 2, owner="ann"), job("b", 1, 1, 6, owner="bob")]
    for reserved, used in ((False, 4.0), (True, 10.0)):
        market = get_mechanism(
            "fair-share", capacity=NODES, horizon=HORIZON, **LIMITS, half_life_hours=1e9, by_reservation=reserved
        )
        play(MarketLoop(market), TruthfulOwners(jobs), 3)
        assert market.usage == pytest.approx({"ann": used, "bob": 3.0})
