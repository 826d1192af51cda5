"""Quotas of queues: cases of public threads, the tree against a count by hand, and promises on drawn markets."""

import numpy as np
import pytest

from draws import many
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.config.kueue import read_kueue
from marketsched.config.scenario import Scenario
from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.schedulers.quota_tree import quota_tree
from marketsched.play.running import run

KINDS = Cluster(
    (Resource("gpu", device=True),), [NodeGroup("t", "t4", 5, {"gpu": 4}), NodeGroup("a", "a100", 5, {"gpu": 4})]
)
CELLS = Cluster((Resource("cpu"), Resource("gpu", device=True)), [NodeGroup("a", "a100", 2, {"cpu": 8, "gpu": 4})])


def hidden(name, owner, birth, nodes, runs, deadline=200):
    truth = StatementOfWork(birth, nodes, DeadlineValue(9.0, deadline), [(birth, runs, 1.0, None)])
    return Job(name, owner, truth, birth, runs)


def with_gpu(name, owner, birth, kind, runs=10):
    shape = Shape({"gpu": 1}, {kind: runs})
    truth = StatementOfWork.of_shapes(birth, DeadlineValue(9.0, 60), birth, [shape], revealed=False)
    return Job(name, owner, truth, birth, runs)


def market_of(capacity=4, horizon=200, **rules):
    sizes = {"max_concurrency": 4, "max_duration": 20, "max_value": 100.0, "max_delay": horizon - 1}
    return get_mechanism("quota", capacity=capacity, horizon=horizon, **sizes, **rules)


def played(market, jobs):
    return play(MarketLoop(market), TruthfulOwners(jobs), market.horizon)


def events_of(market, jobs, *kinds):
    return [(e.round, e.kind.value, e.job) for e in played(market, jobs) if not kinds or e.kind in kinds]


def starts_of(market, jobs):
    return [(when, name) for when, _, name in events_of(market, jobs, "start")]


@pytest.mark.parametrize(("account", "first"), [("a", "b0"), ("a again", "a1")])
def test_a_second_account_pays(account, first):
    """Three of four nodes are a's; for the fourth its next job comes before b's, but only from a fresh account."""
    jobs = [hidden("a0", "a", 1, 3, 20), hidden("a1", account, 3, 1, 20), hidden("b0", "b", 3, 1, 20)]
    assert starts_of(market_of(), jobs)[1] == (3, first)


@pytest.mark.parametrize(("weights", "first"), [({}, ["t0", "a0"]), ({"a100": 4}, ["t0", "t1"])])
def test_kinds_of_gpus_count_by_their_weights(weights, first):
    """Tee runs on 18 T4, aye on 18 A100, and two A100 are free."""
    jobs = [
        with_gpu(f"old-{kind}{i}", owner, 1, kind)
        for owner, kind in (("tee", "t4"), ("aye", "a100"))
        for i in range(18)
    ]
    jobs += [with_gpu(f"{owner[0]}{i}", owner, 3, "a100") for i in range(2) for owner in ("tee", "aye")]
    market = market_of(10, 60, cluster=KINDS, kind_weights=weights)
    assert [name for when, name in starts_of(market, jobs) if when == 3] == first


@pytest.mark.parametrize(("hours", "preempted"), [(0.0, 10), (0.5, 10), (1.0, 0)])
def test_the_minimum_run_bounds_how_often_a_job_is_preempted(hours, preempted):
    """A wide job of 12 rounds borrows all; each 15 rounds a lender takes a node back."""
    jobs = [hidden("low", "low", 1, 4, 12)] + [hidden(f"hi{i}", "hi", 11 + 15 * i, 1, 4) for i in range(10)]
    market = market_of(queues={"hi": {"nominal": 2}}, min_run_hours=hours)
    rows = events_of(market, jobs, "requeue")
    assert len(rows) == preempted and {name for *_, name in rows} <= {"low"}


@pytest.mark.parametrize(("strict", "order"), [(True, "ABCD"), (False, "ACDB")])
def test_a_strict_queue_lets_no_job_pass_its_head(strict, order):
    jobs = [hidden("A", "x", 1, 3, 4), hidden("B", "x", 2, 4, 4), hidden("C", "x", 3, 1, 8), hidden("D", "x", 9, 1, 8)]
    market = market_of(queues={"x": {"nominal": 4, "strict": strict}})
    assert "".join(name for _, name in starts_of(market, jobs)) == order


@pytest.mark.parametrize(("reserve", "wide"), [("head", 5), ("none", 17)])
@pytest.mark.parametrize("queues", [{}, {"eve": {"nominal": 1}}])  # Eve takes a node back while a place is held
def test_a_place_is_held_for_a_wide_job_that_is_first(queues, reserve, wide):
    jobs = [hidden("A", "x", 1, 3, 4), hidden("B", "y", 2, 4, 4), hidden("C", "z", 3, 1, 8), hidden("D", "z", 9, 1, 8)]
    jobs += [hidden("E", "eve", 4, 1, 1)] if queues else []
    starts = {name: when for when, name in starts_of(market_of(queues=queues, reserve=reserve), jobs)}
    assert starts["B"] == wide and starts["C"] == (9 if reserve == "head" else 3)


def room_by_hand(queues, cohorts, used):
    """Return the most that each queue may use more, found by trying: every node covers its use, or passes it on."""
    given = {**queues, **cohorts}
    above = {name: each.get("cohort", each.get("parent")) for name, each in given.items()}

    def allowed(use):
        supply, need = dict.fromkeys(given, 0), dict.fromkeys(given, 0) | use
        for name in [*queues, "x", "y", "top"]:  # children first
            own = given[name].get("nominal", 0) + supply[name]
            if name == "top":
                return need[name] <= own
            keeps = max(0, own - given[name].get("lend", 1000))
            passed_on = max(0, need[name] - keeps)
            if passed_on > own - keeps + given[name].get("borrow", 1000):
                return False
            supply[above[name]] += own - keeps
            need[above[name]] += passed_on

    return {q: next(m for m in range(99) if not allowed({**used, q: used[q] + m + 1})) for q in queues}


@pytest.mark.parametrize("seed", range(many(120)))
def test_a_tree_of_cohorts_allows_what_a_count_by_hand_allows(seed):
    rng = np.random.default_rng(seed)

    def limits():
        drawn = {"nominal": int(rng.integers(0, 8))}
        return drawn | {key: int(rng.integers(0, 6)) for key in ("borrow", "lend") if rng.random() < 0.4}

    cohorts = {
        "top": {"nominal": int(rng.integers(0, 5))},
        "x": limits() | {"parent": "top"},
        "y": limits() | {"parent": "top"},
    }
    queues = {f"q{i}": limits() | {"cohort": str(rng.choice(["x", "y", "top"]))} for i in range(4)}
    leaves, tops = quota_tree(queues, cohorts, Cluster.of_nodes(50), {})
    used = dict.fromkeys(queues, 0)
    for _ in range(12):
        room = room_by_hand(queues, cohorts, used)
        assert {name: leaf.available(0) for name, leaf in leaves.items()} == room
        name = str(rng.choice(list(queues)))
        if used[name] and rng.random() < 0.4:
            amount = int(rng.integers(1, used[name] + 1))
            leaves[name].release([(0, float(amount))])
            used[name] -= amount
        elif room[name] > 0:
            amount = int(rng.integers(1, room[name] + 1))
            leaves[name].use([(0, float(amount))])
            used[name] += amount
    for name in queues:
        leaves[name].release([(0, float(used[name]))] if used[name] else [])
    assert all(node.used == [0.0] for top in tops for node in [top, *top.children])


@pytest.mark.parametrize("seed", range(many(40)))
def test_a_job_within_its_quota_waits_for_no_run_that_may_be_preempted(seed):
    """Round by round: neither free nodes nor, where nothing starts, runs that borrow and are old enough are enough."""
    rng = np.random.default_rng(seed)
    draws = np.column_stack([np.sort(rng.integers(1, 60, 30)), rng.integers([0, 1, 1], [3, 4, 13], (30, 3))]).tolist()
    jobs = [hidden(f"j{i}", f"o{o}", birth, nodes, runs) for i, (birth, o, nodes, runs) in enumerate(draws)]
    width, owner = ({job.name: getattr(x, key) for job in jobs if (x := job.truth if key != "owner" else job)}
                    for key in ("concurrency", "owner"))  # fmt: skip
    market = market_of(6, queues={f"o{i}": {"nominal": 2} for i in range(3)}, min_run_hours=0.25)
    began, waiting, events = {}, set(), events_of(market, jobs)
    for when in range(1, market.horizon + 1):
        now = [(kind, name) for at, kind, name in events if at == when]
        waiting |= {job.name for job in jobs if job.arrival == when}
        for kind, name in now:
            if kind == "requeue":
                assert when - began.pop(name) >= 3
                waiting.add(name)
            elif kind != "complete":
                waiting.discard(name)
                began.pop(name, None)
                began |= {name: when} if kind == "start" else {}
        held = {o: sum(width[job] for job in began if owner[job] == o) for o in ("o0", "o1", "o2")}
        free, started = 6 - sum(held.values()), "start" in {kind for kind, _ in now}
        assert free >= 0
        preempted = "requeue" in {kind for kind, _ in now}  # room that is left by it is given away a round later
        for job in () if preempted else waiting:
            if held[owner[job]] + width[job] <= 2:
                more, use = 0, dict(held)
                for other in sorted(began, key=lambda name: -began[name]):
                    o = owner[other]
                    if o != owner[job] and use[o] > 2 and when - began[other] >= 3:
                        use[o] -= width[other]
                        more += width[other]
                assert free + (0 if started else more) < width[job]
        for kind, name in now:
            if kind == "complete":
                began.pop(name)


KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: fast}
spec: {nodeLabels: {gpu.type: a100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: lab
  queueingStrategy: StrictFIFO
  preemption: {reclaimWithinCohort: Any}
  fairSharing: {weight: 2}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: fast
      resources:
      - {name: cpu, nominalQuota: 8, borrowingLimit: 4}
      - {name: nvidia.com/gpu, nominalQuota: 4, lendingLimit: 1}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: ann}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: lab}
spec: {parentName: root}
"""


def test_objects_of_kueue_become_queues(tmp_path):
    (tmp_path / "kueue.yaml").write_text(KUEUE)
    found = read_kueue(str(tmp_path / "kueue.yaml"), CELLS)
    assert found == {
        "queues": {
            "research": {
                "nominal": {"a100": {"cpu": 8.0, "gpu": 4.0}},
                "borrow": {"a100": {"cpu": 4.0}},
                "lend": {"a100": {"gpu": 1.0}},
                "weight": 2.0,
                "cohort": "lab",
                "owners": ["ann", "team"],
                "strict": True,
                "reclaim": True,
            }
        },
        "cohorts": {"lab": {"nominal": {}, "borrow": {}, "lend": {}, "parent": "root"}},
    }
    (tmp_path / "market.yaml").write_text(
        "name: m\nworkload: {kind: jobs, capacity: 4, horizon: 9, max_concurrency: 1, max_duration: 3, max_value: 9, "
        "max_delay: 8, "
        "jobs: [{name: A, owner: team, birth: 1, concurrency: 1, value: {kind: deadline, value: 5, deadline: 9}, "
        "requirements: [{arrival: 1, duration: 2, probability: 1, signal: null}]}]}\n"
        "mechanism: {name: quota, parameters: {queues: kueue.yaml}}\n"
    )
    scenario = Scenario.load(tmp_path / "market.yaml")
    assert run(scenario, seed=0).outcome["completed"] == 1  # the file is found beside the scenario
    with pytest.raises(InvalidParameterError, match=r"others = '': expected a queue \(research\) for bob"):
        run(scenario.with_changes("workload.jobs.0.owner=bob"), seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("nominalQuota: 8", "nominalQuota: 8Q"), r"queues: cpu = '8Q': expected a quantity such as 8, 500m or 64Gi"),
        (("gpu.type: a100", "gpu.type: h100"), r"queues: flavor = 'fast': expected a100"),
        (("{name: cpu,", "{name: ephemeral,"), r"queues: resource = 'ephemeral': expected cpu, gpu"),
        (("kind: ClusterQueue", "kind: Workload"), r"queues = .*: expected a file with a ClusterQueue"),
        (("kind: ClusterQueue", "kind: ["), r"queues = .*: expected a file of Kueue's objects"),
    ],
)
def test_a_bad_file_of_kueue_is_one_line(tmp_path, change, message):
    (tmp_path / "kueue.yaml").write_text(KUEUE.replace(*change))
    with pytest.raises(InvalidParameterError, match=message) as error:
        read_kueue(str(tmp_path / "kueue.yaml"), CELLS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"queues": {"a": {"nominl": 2}}}, r"queues: a = .*: expected some of nominal, borrow"),
        ({"queues": {"a": {"nominal": -1}}}, r"queues: a: nominal: node: node = -1"),
        ({"queues": {"a": {"nominal": {"t4": {"gpu": 1}}}}}, r"queues: a: nominal = .*: expected numbers by resource"),
        ({"queues": {"a": {"owners": ["x"]}, "b": {"owners": ["x"]}}}, r"queues: b: owners = 'x': expected one"),
        ({"cohorts": {"a": {"parent": "b"}, "b": {"parent": "a"}}}, r"cohorts: a: parent = 'b': expected none"),
        ({"others": "z"}, r"others = 'z': expected a queue"),
        ({"kind_weights": {"a100": 2}}, r"kind_weights = 'a100': expected node"),
    ],
)  # fmt: skip
def test_bad_queues_are_one_clear_error(rules, message):
    with pytest.raises(InvalidParameterError, match=message):
        market_of(**rules)


def test_the_result_names_the_job_that_was_preempted_most_often():
    from marketsched.results.kinds import kind_of

    scenario = Scenario.from_dict(
        {
            "name": "thrash",
            "workload": {
                "kind": "jobs", "capacity": 4, "horizon": 60, "max_concurrency": 4, "max_duration": 12, "max_value": 9,
                "max_delay": 59,
                "jobs": [
                    {"name": name, "owner": name[:2], "birth": birth, "concurrency": nodes,
                     "value": {"kind": "deadline", "value": 5, "deadline": 60},
                     "requirements": [{"arrival": birth, "duration": runs, "probability": 1, "signal": None}]}
                    for name, birth, nodes, runs in (("low", 1, 4, 12), ("hi0", 5, 1, 1), ("hi1", 10, 1, 1))
                ],
            },
            "mechanism": {"name": "quota", "parameters": {"queues": {"hi": {"nominal": 1}}, "min_run_hours": 0}},
        }
    )  # fmt: skip
    result = run(scenario, seed=0)
    told = [str(part) for part in kind_of("market").view(result).renderables]
    assert "- preempted most often: job low of lo, 2 times" in told
