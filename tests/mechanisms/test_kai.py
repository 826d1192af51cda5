"""KAI's division of a resource: the cases of its own tests by name, at commit 72de64fc, and what an owner meets.

The cases are those of `resource_division_test.go`, `queue_order_test.go` and, of what orders queues by several
resources, of `queue_resource_share_test.go`. Not covered: the cases of division on memory, which repeat those on CPU
with other units; `getQueuesByPriority`; the other cases of `resource_share`, which read fields back; `capacity_policy`
and `reclaimable`, about quotas of jobs that may not be preempted and about running jobs; the runs of
`time_aware_fairness_test.go` and `timeaware_test.go`, which reclaim nodes of running jobs (their arithmetic is below).
"""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.schedulers.kai import divide, divide_over_quota
from marketsched.mechanisms.schedulers.kai_queues import Holding, Queue, dominant_share, goes_first, order_of
from refusals import refused


def one(**changes):
    return {"1": Queue(**{"deserved": 3, "weight": 0, "request": 2} | changes)}


def two(**changes):
    """Return two queues; a change is a pair."""
    base = {"deserved": (2, 2), "weight": (2, 2), "request": (6, 6), "created": (0, 1)} | changes
    return {str(i + 1): Queue(**{name: pair[i] for name, pair in base.items()}) for i in range(2)}


def three(**changes):
    base = {"deserved": (5000,) * 3, "weight": (5000,) * 3, "request": (5000,) * 3, "created": (0, 1, 2)} | changes
    return {str(i + 1): Queue(**{name: each[i] for name, each in base.items()}) for i in range(3)}


NO_LIMIT = math.inf
CASES = {  # name: total, queues, shares, remaining
    # setResourceShare - GPU: single queue within quota (sanity)
    "gives requested GPUs - no remaining": (2, one(), (2,), 0),
    "gives requested GPUs with remaining": (3, one(), (2,), 1),
    "doesn't give more GPUs than allowed (within quota)": (3, one(allowed=2), (2,), 1),
    "gives up to deserved when over subscribed": (1, one(), (2,), 0),
    "gives up to full quota": (7, one(request=5), (3,), 4),
    "gives with fraction, if stated in deserved": (2, one(deserved=1.5), (1.5,), 0.5),
    "gives with fraction, if stated in request": (2, one(request=1.5), (1.5,), 0.5),
    "doesn't give if deserved is zero": (2, one(deserved=0), (0,), 2),
    # two queues
    "allocates many available gpus": (15, two(), (6, 6), 3),
    "allocates exact requested amount gpus": (12, two(), (6, 6), 0),
    "allocates GPUs proportionally": (8, two(weight=(1, 3)), (3, 5), 0),
    "doesn't allocate more than allowed": (12, two(allowed=(5, NO_LIMIT)), (5, 6), 1),
    "distributes remainder between queues based on largest remaining": (
        11,
        two(weight=(1, 4), request=(10, 10)),
        (3, 8),
        0,
    ),
    "distributes remainder between queues based on creation time": (11, two(), (6, 5), 0),
    "priority doesn't affect deserved": (4, two(priority=(1, 2)), (2, 2), 0),
    "priority does affect over-quota": (6, two(priority=(1, 2)), (2, 4), 0),
    "priority does affect over-quota, even when overQuotaWeight is set": (
        6,
        two(weight=(100, 1), priority=(1, 2)),
        (2, 4),
        0,
    ),
    "divides the remainder even when using priorities": (
        5,
        three(deserved=(2, 2, 1), weight=(2, 2, 2), request=(5, 5, 0), priority=(2, 2, 1)),
        (3, 2, 0),
        0,
    ),
    # setResourceShare - CPU
    "gives requested CPUs to queue": (3000, one(deserved=3000, weight=3000, request=2000), (2000,), 1000),
    "gives deserved in over subscription": (1000, one(deserved=3000, weight=3000, request=2000), (2000,), 0),
    "reclaims all resources of queue 2": (
        10_000,
        two(deserved=(5000, 0), weight=(5000, 0), request=(10_000, 5000)),
        (10_000, 0),
        0,
    ),
    "all queues get their deserved fairShare - over subscription": (10_000, three(), (5000, 5000, 5000), 0),
    "all queues get their deserved fairShare - over quota": (
        18_000,
        three(request=(6000,) * 3),
        (6000, 6000, 6000),
        0,
    ),
    "reclaims unneeded resources from an allocated queue to fulfill the unallocated queue": (
        10_000,
        three(request=(7000, 2000, 2000)),
        (6000, 2000, 2000),
        0,
    ),
    "reclaims from both allocated queues to fulfill the last unallocated queue": (
        10_000,
        three(request=(7000, 5000, 2000)),
        (5000, 5000, 2000),
        0,
    ),
    "the same, one queue request more than it deserves and allowed": (
        10_000,
        three(request=(7000, 2000, 2000), allowed=(7000, NO_LIMIT, NO_LIMIT)),
        (6000, 2000, 2000),
        0,
    ),
    "reclaims all resources of queue 2 and allocates allowed resource in queue 3": (
        10_000,
        three(deserved=(5000, 0, 5000), request=(10_000, 5000, 10_000)),
        (5000, 0, 5000),
        0,
    ),
    # SetResourcesShare
    "one queue: Enough resources - should gets all request, CPU": (
        2500,
        one(deserved=200, weight=1, request=500),
        (500,),
        2000,
    ),
    "one queue: Not enough resources - should gets all cluster, GPU": (
        1,
        one(deserved=2, weight=1, request=3),
        (2,),
        0,
    ),
    "one queue: Not enough resources - should gets all cluster, memory": (
        3000,
        one(deserved=1000, weight=1, request=5000),
        (3000,),
        0,
    ),
    "two queues: Request more than total with same Over Quota and deserved - divide evenly": (
        10,
        two(deserved=(1, 1), weight=(1, 1), request=(8, 8)),
        (5, 5),
        0,
    ),
    "two queues: Request more than total with different Over Quota": (
        1000,
        two(deserved=(250, 150), weight=(1, 2), request=(5000, 5000)),
        (450, 550),
        0,
    ),
    "two queues: Request more than total with different Over Quota and max allowed": (
        1000,
        two(deserved=(250, 150), weight=(1, 2), request=(5000, 5000), allowed=(NO_LIMIT, 400)),
        (600, 400),
        0,
    ),
    "three queues: divide resource evenly queues": (
        9999,
        three(deserved=(1000,) * 3, weight=(1,) * 3, request=(10_000,) * 3),
        (3333,) * 3,
        0,
    ),
    "three queues: divide resource between queues with different over quota": (
        9999,
        three(deserved=(0,) * 3, weight=(6, 2, 1), request=(10_000,) * 3),
        (6666, 2222, 1111),
        0,
    ),
    "advanced scenarios: fractional fair share": (
        45,
        three(
            deserved=(12, 7, 2),
            weight=(12, 7, 2),
            request=(32.54999999999996, 9.5, 1.65),
            allowed=(NO_LIMIT, NO_LIMIT, 2),
        ),
        (32.54999999999996, 9.5, 1.65),
        None,
    ),
    "advanced scenarios: divide last remaining GPU based to similar queues": (
        5,
        two(request=(3, 3)),
        (3, 2),
        0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_its_own_cases(name):
    total, queues, shares, remaining = CASES[name]
    found, left = divide(total, queues)
    assert tuple(found.values()) == shares
    assert remaining is None or left == remaining


OVER_QUOTA = {  # single queue over quota (sanity): amount, changes, share before, share after, remaining
    "gives requested GPUs no remaining": (2, {}, 3, 5, 0),
    "gives requested GPUs with remaining": (3, {}, 3, 5, 1),
    "doesn't give more GPUs than allowed": (2, {"allowed": 4}, 3, 4, 1),
    "doesn't give when over quota weight is zero": (2, {"weight": 0}, 3, 3, 2),
    "gives with fraction if requested": (2, {"request": 4.5}, 3, 4.5, 0.5),
    "gives remainder fraction": (0.5, {}, 3, 3.5, 0),
    "gives when deserved is zero": (6, {"deserved": 0}, 0, 5, 1),
    "doesn't break when there are zero resources to divide": (0, {}, 3, 3, 0),
    "doesn't give when over quota weight is zero, ten units": (10, {"weight": 0}, 3, 3, 10),
}


@pytest.mark.parametrize("name", OVER_QUOTA)
def test_divide_over_quota(name):
    amount, changes, before, after, remaining = OVER_QUOTA[name]
    shares = {"1": before}
    left = divide_over_quota(amount, one(**{"weight": 1, "request": 5} | changes), shares)
    assert (shares["1"], left) == (after, remaining)


def test_two_queues_over_quota_sanity():
    queues = {"1": Queue(deserved=3, weight=0, request=5), "2": Queue(deserved=3, weight=1, request=3)}
    shares = {"1": 3.0, "2": 3.0}
    assert divide_over_quota(10, queues, shares) == 10 and shares == {"1": 3.0, "2": 3.0}


ORDERS = {  # TestGetQueueOrderResult: (quota, fair share, allocated, job, priority) of both, which goes first
    "test prioritization based on fair share starvation": ((2, 99, 20, 0, 0), (2, 2, 0, 0, 0), 1),
    "test prioritization based on quota starvation, even if priority is different": (
        (2, 99, 20, 0, 1),
        (2, 2, 0, 0, 0),
        1,
    ),
    "prioritize queue priority if queues are satisfied": ((2, 99, 20, 0, 1), (2, 2, 3, 0, 0), 0),
    "prioritize queue priority if queues are satisfied, quota < rQueue < fairshare": (
        (2, 99, 20, 0, 1),
        (2, 80, 3, 0, 0),
        0,
    ),
    # GPUs of 10,000: two of 5000 are one, two of 10,000 are two, four of 8000 are 3.2, four of 2000 are .8
    "GPU memory affects queue order - lower memory request prioritized": ((50, 50, 40, 1, 0), (50, 50, 40, 2, 0), 0),
    "GPU memory affects queue order - higher memory request deprioritized": (
        (50, 50, 40, 3.2, 0),
        (50, 50, 40, 0.8, 0),
        1,
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_queue_order(name):
    """As there, of three resources, two of which are empty; and by the key for one resource."""
    *both, first = ORDERS[name]
    gpus = [Holding(Queue(deserved=d, priority=p), share, held, job, 100) for d, share, held, job, p in both]
    keys = [order_of(each) for each in gpus]
    assert keys.index(min(keys)) == first
    left, right = (
        dict.fromkeys(("cpu", "memory"), Holding(Queue(priority=each.queue.priority), 0, 0)) | {"gpu": each}
        for each in gpus
    )
    assert goes_first(left, right) == (first == 0)


def test_queue_resource_share():
    """Its get dominant resource share, and get allocatable share."""
    amounts = {"cpu": (1, 2, 3, 5), "memory": (8, 9, 10, 12), "gpu": (15, 16, 17, 19)}
    held = {name: Holding(Queue(deserved=d, allowed=m), s, a) for name, (d, s, m, a) in amounts.items()}
    assert dominant_share(held) == 2.5
    assert [each.allocatable for each in held.values()] == [2, 9, 16]


def test_above_the_fair_share_is_above_in_every_resource():
    """A hundred GPUs above its share, and no memory: such a queue is not above its share, and wins by priority."""
    greedy, modest = Queue(deserved=200, priority=1), Queue(deserved=200)
    left = {"gpu": Holding(greedy, 2, 102), "memory": Holding(greedy, 2, 0)}
    right = {"gpu": Holding(modest, 2, 1), "memory": Holding(modest, 2, 1)}
    assert goes_first(left, right)
    assert not goes_first({**left, "memory": Holding(greedy, 2, 3)}, right)


AMOUNTS, QUOTAS = st.sampled_from([0.0, 1.0, 2.0, 4.0]), st.sampled_from([0.0, 1.0, 4.0, math.inf])
HELD = st.tuples(QUOTAS, QUOTAS, st.integers(0, 1), AMOUNTS, AMOUNTS, AMOUNTS)


@given(HELD, HELD)
@example((math.inf, math.inf, 0, 0.0, 0.0, 0.0), (4.0, 4.0, 0, 0.0, 0.0, 0.0))  # more than any finite share
def test_one_resource_is_ordered_by_its_key(left, right):
    one, two = (
        Holding(Queue(deserved=d, allowed=m, priority=p, created=i), share, held, job, 2.0)
        for i, (d, m, p, share, held, job) in enumerate((left, right))
    )
    assert goes_first({"node": one}, {"node": two}) == (order_of(one) < order_of(two))
    assert goes_first({"node": two}, {"node": one}) != goes_first({"node": one}, {"node": two})


def test_the_past_counts_as_in_the_design():
    """P = max(0, W + k (W - U)), normalised; 0 usage is the rule without a past."""
    queues = {"a": Queue(weight=3, request=90, used=0.5), "b": Queue(weight=1, request=90, used=0.0, created=1)}
    for k in (0.0, 0.5, 2.0):
        parts = [max(0.0, w + k * (w - u)) for w, u in ((0.75, 0.5), (0.25, 0.0))]
        found, _ = divide(80, queues, k)
        assert found["a"] == pytest.approx(80 * parts[0] / sum(parts), abs=1)
    # timeaware_test.go: weights 10000 and 1, k = 100, the first has used all
    queues = {"a": Queue(weight=10_000, request=1e6, used=1.0), "b": Queue(weight=1, request=1e6, created=1)}
    assert divide(10_001, queues, 100.0)[0]["b"] == pytest.approx(10_001 * 0.0101 / (0.99 + 0.0101), abs=2)


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 12), st.integers(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 30),
    st.sampled_from([0.0, 0.5, 4.0]),
)
def test_nothing_is_divided_twice(rows, total, k):
    queues = {i: Queue(d, w, r, priority=p, used=u, created=i) for i, (d, w, r, p, u) in enumerate(rows)}
    shares, left = divide(total, queues, k)
    quotas = sum(min(q.deserved, q.request) for q in queues.values())
    assert sum(shares.values()) + left == pytest.approx(max(total, quotas))
    for i, queue in queues.items():
        assert min(queue.deserved, queue.request) - 1e-9 <= shares[i] <= queue.request + 1  # a unit is not split


LIMITS = {"max_concurrency": 4, "max_duration": 20, "max_value": 10.0, "max_delay": 40}


def played(jobs, rounds, **parameters):
    """Return the round in which each job, (owner, nodes, arrival, duration), starts on four nodes."""
    market = get_mechanism("kai", capacity=4, horizon=40, **LIMITS, **parameters)
    running, starts = {}, {}
    for now in range(1, rounds + 1):
        new = [(i, job) for i, job in enumerate(jobs) if job[2] == now]
        for i, (owner, nodes, _, duration) in new:
            law = [(now, duration, 1.0)]
            market.submit(i, StatementOfWork(now, nodes, DeadlineValue(5.0, 40), law), owner=owner)
        for i, (_, _, _, duration) in new:
            market.arrive(i, duration)
        for event in market.advance():
            if event.kind.value == "start":
                starts[event.job] = now
                running[event.job] = now + jobs[event.job][3] - 1
        for i in [i for i, last in running.items() if last == now]:
            market.complete(i)
            del running[i]
    return starts, market


def test_who_has_used_less_goes_first_and_turns_alternate():
    """Two owners with jobs of the whole cluster: with a past they take turns, as in its story 1."""
    jobs = [("ann", 4, 1, 2)] * 3 + [("bob", 4, 1, 2)] * 3
    starts, market = played(jobs, 12, significance=4.0)
    assert [sorted(starts, key=starts.get)[i] // 3 for i in range(6)] == [0, 1, 0, 1, 0, 1]
    assert market._used["ann"] / market._offered == 24 / 44


def test_window_and_half_life():
    jobs = [("ann", 4, 1, 3)]
    _, market = played(jobs, 8, window_hours=4 * 300 / 3600)
    assert market._used["ann"] == 0 and market._offered == 16
    _, market = played(jobs, 5, half_life_hours=300 / 3600)
    assert market._used["ann"] == 4 / 2 + 4 / 4 + 4 / 8  # it ran in rounds 1 to 3; this is round 5


def test_bad_input():
    refused(lambda: played([], 1, significance=-1), place="significance", seen=-1)
    refused(lambda: played([], 1, queues={"ann": {"weight": -1}}), place="queues: ann: weight", seen=-1)
    with pytest.raises(InvalidParameterError, match="queues: ann = 3: expected some of deserved, weight, allowed"):
        played([], 1, queues={"ann": 3})
