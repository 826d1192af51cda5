"""Two offers on clusters: inside an entry no report moves or gains anything, and no node is overfull."""

from collections import Counter

import numpy as np
import pytest

from cluster_offers_markets import (
    CLUSTER,
    Chosen,
    drawn_jobs,
    findings,
    market_of,
    moved,
    played,
    stated,
)
from marketsched.agents.job import Job
from marketsched.mechanisms import ClusterOffers, DeadlineValue, StatementOfWork, TableValue
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.offers.cluster_present import Way
from marketsched.mechanisms.offers.cluster_waits import SEEN, Seen, _waits_kernel
from marketsched.mechanisms.offers.patience import POSTED
from marketsched.mechanisms.offers.present import REGULAR, SPARE
from marketsched.mechanisms.offers.waits import AHEAD
from marketsched.mechanisms.resources.shapes import Shape

GPUS = {"gpu": 2, "cpu": 2}  # all GPUs of a node of kind a, of which there are two


def counts_of(seeds, made=Chosen, n=6):
    counts = [moved(seed, made, n) for seed in seeds]
    return sum(count for count, _ in counts), sum(found for _, found in counts)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("block", range(8))
def test_no_report_moves_anything_inside_an_entry(block):
    reports, found = counts_of(range(4 * block, 4 * block + 4))
    assert reports > 20 and not found


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("seed", range(4))
def test_no_report_gains_inside_an_entry(seed):
    found = findings(seed, n=2)
    assert found["reports"] and not found["better inside"] and not found["announced better"]


def overfull(market):
    """Return on how many nodes and devices more runs than there is."""
    layout = CLUSTER.layout
    held = np.zeros_like(layout.size)
    parts = np.zeros(int(layout.device_begin.max()))
    for each in market._present.values():
        found = market.booking(each.x.job)
        if found is not None:
            for node, tasks in zip(found.placed.nodes.tolist(), found.placed.tasks.tolist(), strict=True):
                held[node] += tasks * found.wanted.demand
            parts[found.placed.devices] += found.placed.parts
    return int((held > layout.size).sum() + (parts > layout.device_parts.max()).sum())


def test_no_node_is_overfull_in_any_resource():
    full, taken = [], Counter()

    def watch(market, events):
        full.append(overfull(market))
        taken.update(event.kind.value for event in events)

    for seed in range(2):
        jobs, rng = drawn_jobs(seed, n=60, span=20), np.random.default_rng(seed)
        classes = {each.name: ((), int(rng.integers(2)), column(32)) for each in jobs}
        played(market_of(jobs, chosen=classes), jobs, watch=watch)
    assert not any(full) and taken["start"] > 40 and taken["requeue"]


def job(name, birth, last, duration, law=None, each=GPUS, value=9.0, **more):
    """Return a job on nodes of kind a."""
    truth = stated(birth, DeadlineValue(value, last), each, {"a": 1}, law or ((duration,), (1.0,)))
    return Job(name, "ann", replace_with(truth, **more), birth, duration)


def replace_with(truth, **more):
    """Return a statement with another patience, or one that cannot restart."""
    return StatementOfWork(
        truth.birth, 1, truth.value,
        [(truth.birth, d, p, None) for d, p in zip(truth.law.durations, truth.law.probabilities, strict=True)],
        shapes=truth.shapes, **more,
    ) if more else truth  # fmt: skip


def kinds_of(events, name):
    return [(event.round, event.kind.value) for event in events if event.job == name]


def column(patience):
    return int(np.flatnonzero(patience == POSTED)[0])


def test_who_has_waited_as_long_as_it_agreed_to_is_dropped():
    runs = [job(f"run {i}", 1, 40, 6) for i in range(2)]
    jobs = [*runs, job("waits", 2, 40, 3)]
    for patience, seen in ((3, [(6, "drop")]), (6, [(7, "start"), (9, "complete")])):
        events, _ = played(market_of(jobs, chosen={"waits": ((), SPARE, column(patience))}), jobs)
        assert kinds_of(events, "waits") == seen


def test_the_queue_is_by_class_and_then_by_latest_start():
    runs = [job(f"run {i}", 1, 60, 6) for i in range(2)]
    jobs = [*runs, *(job(name, 2, 60, 9) for name in ("patient", "hurried", "regular"))]
    chosen = {
        **{f"run {i}": ((), REGULAR, 0) for i in range(2)},
        "patient": ((), SPARE, column(28)), "hurried": ((), SPARE, column(12)), "regular": ((), REGULAR, column(32)),
    }  # fmt: skip
    events, _ = played(market_of(jobs, chosen=chosen), jobs)
    starts = {event.job: event.round for event in events if event.kind.value == "start"}
    assert starts["regular"] == starts["hurried"] == 7 < starts["patient"] == 16


def test_a_regular_job_takes_a_spare_run_back_if_it_loses_little():
    for begins, taken in ((4, True), (9, False)):  # usual rounds are 4 before anybody has left, b is .75
        runs = [job(f"run {i}", 1 + i, 60, 12) for i in range(2)]
        jobs = [*runs, job("new", begins, 60, 3)]
        chosen = {f"run {i}": ((), SPARE, column(32)) for i in range(2)} | {"new": ((), REGULAR, column(32))}
        events, _ = played(market_of(jobs, chosen=chosen), jobs)
        assert (kinds_of(events, "new")[0] == (begins, "start")) == taken
        back = [event.job for event in events if event.kind.value == "requeue"]
        assert back == (["run 1"] if taken else [])  # it has less to lose
        assert all(kinds_of(events, f"run {i}")[-1][1] == "complete" for i in range(2))


def test_a_run_that_is_stopped_pays_nothing_and_one_that_is_done_its_rounds():
    law = ((2, 6), (0.5, 0.5))
    for duration, seen, paid in ((2, "complete", True), (6, "evict", False)):
        jobs = [job("A", 1, 12, duration, law, value=1.0)]
        market = market_of(jobs, chosen={"A": ((), REGULAR, column(0))}, rate=0.1)
        events, _ = played(market, jobs)
        last = next(event for event in events if event.job == "A" and event.kind.leaves)
        size, rate = 4 * 2 / 4, 1.5 * 0.1  # nodes of half of all GPUs; regular, without patience
        assert last.kind.value == seen and last.payment == pytest.approx(paid * rate * size * duration)


def test_who_cannot_restart_is_offered_regular_nodes_and_a_stated_patience_is_the_only_one():
    jobs = [job("A", 1, 40, 3, restarts=False), job("B", 1, 40, 3, patience=5)]
    market = market_of(jobs, rate=0.1)
    played(market, jobs)
    assert market.taken["A"][1] == REGULAR and market.taken["B"][2] == column(5)
    market = market_of(jobs, rate=0.1, spare=False)
    played(market, jobs)
    assert market.taken["B"][1] == REGULAR and not market.takes_back


def test_values_that_rise_are_refused():
    shape = Shape(GPUS, {"a": (2,)})
    rising = StatementOfWork.of_shapes(1, TableValue({3: 1.0, 5: 1.0}), 1, [shape], revealed=False)
    market = market_of([job("A", 1, 40, 3)])
    with pytest.raises(InvalidReportError, match="do not rise"):
        market.submit("A", rising)
    falls = StatementOfWork.of_shapes(1, TableValue({3: 2.0, 4: 1.0}), 1, [shape], revealed=False)
    market.submit("A", falls)


def test_a_revealed_duration_is_a_law_of_one_case():
    def first(revealed, durations, chances):
        shape = Shape(GPUS, {"a": durations})
        truth = StatementOfWork.of_shapes(1, DeadlineValue(5.0, 9), 1, [shape], chances, revealed=revealed)
        seen = (6,) if revealed else ()
        jobs = [Job("A", "ann", truth, 1, 6, *seen)]
        market = market_of(jobs, rate=0.1)
        events, _ = played(market, jobs)
        return market.values["A", (0,)].tolist(), events

    assert first(True, (2, 6), (0.5, 0.5)) == first(False, (6,), (1.0,)) != first(False, (2, 6), (0.5, 0.5))


def naive_wait(rows, way, now, latest, lengths, most_lost):
    """Return the expected waits as spare and as regular job at one latest start, by the docstring."""
    there = [row for row in rows if row["start"] and way.pools[row["pool"]]]
    before = [row for row in rows if (way.pools & row["accepts"]).any() and not row["start"]]
    work = [row["size"] * lengths[row["band"]] for row in before if row["offer"] or row["latest"] <= latest]
    own = sum(row["size"] * lengths[row["band"]] for row in before if row["offer"] and row["latest"] <= latest)
    size = [sum(row["size"] for row in there if row["offer"] == k) for k in (SPARE, REGULAR)]
    room = any(
        not row["offer"] and row["share"] >= way.share and row["size"] * (now - row["start"]) <= most_lost
        for row in there
    )
    spare = min(AHEAD, 1 + int(sum(work) / max(1e-9, sum(size))))
    return spare, 0 if room else min(AHEAD, 1 + int(own / max(1e-9, size[REGULAR])))


@pytest.mark.parametrize("kernel", [_waits_kernel, getattr(_waits_kernel, "py_func", _waits_kernel)])
def test_waits_are_those_of_a_naive_count(kernel, monkeypatch):
    monkeypatch.setattr("marketsched.mechanisms.offers.cluster_waits._waits_kernel", kernel)
    rng, latest = np.random.default_rng(0), np.array([10, 12, 20, 40])
    lengths = np.array([2.0, 3.0, 5.0, 8.0, 13.0, 21.0])
    for _ in range(30):
        seen, rows = Seen(3), []
        for _ in range(int(rng.integers(1, 12))):
            row = {
                "offer": int(rng.integers(2)), "latest": int(rng.integers(5, 50)), "size": int(rng.integers(1, 9)) / 4,
                "share": float(rng.integers(1, 5)) / 4, "band": int(rng.integers(6)), "accepts": rng.random(3) < 0.6,
                "start": int(rng.integers(10)) if rng.random() < 0.6 else 0, "pool": int(rng.integers(3)),
            }  # fmt: skip
            there = Way([], None, row["size"], row["share"], row["band"], 0, row["accepts"])
            place = seen.enter(there, row["offer"], row["latest"])
            if row["start"]:
                seen.runs(place, row["start"], row["pool"])
            if rng.random() < 0.2:
                seen.leave(place)
            else:
                rows.append(row)
        mine = Way([], None, 1.0, 0.5, 0, 0, rng.random(3) < 0.6)
        found = seen.expected_waits(mine, 10, latest, lengths, 1.0, 3.0, fits=False)
        expected = [naive_wait(rows, mine, 10, each, lengths, 3.0) for each in latest.tolist()]
        assert found.T.tolist() == [list(each) for each in expected]
        assert not seen.expected_waits(mine, 10, latest, lengths, 1.0, 3.0, fits=True).any()
    assert set(SEEN.names) >= {"here", "start"}


def test_figures_count_what_left_and_each_of_them_teaches_once(monkeypatch):
    jobs, taught = drawn_jobs(1, n=40, span=20), []
    market = market_of(jobs, made=Chosen, rate=0.2)
    learn = market.learnt.learn
    monkeypatch.setattr(market.learnt, "learn", lambda *of, **more: (taught.append((of[0], more)), learn(*of, **more)))
    events, _ = played(market, jobs)
    figures, kinds = market.statistics(), Counter(event.kind.value for event in events)
    assert figures["requeues"] == kinds["requeue"] and figures["node_rounds"] > figures["node_rounds_lost"]
    assert 0 < figures["regular_jobs"] + figures["spare_jobs"] == len(taught) <= len(market.taken)
    done = sum(more["in_time"] for _, more in taught)
    assert done == kinds["complete"] and all(more["density"] > 0 < more["work"] for _, more in taught)
    assert isinstance(market, ClusterOffers) and market.slot_prices(1, 3).tolist() == [market.rates.posted[1]] * 3
