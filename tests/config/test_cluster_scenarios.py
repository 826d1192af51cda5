"""Clusters and shapes in scenario files: what is read, how it plays, and faults by place."""

import copy

import numpy as np
import pytest

from marketsched import compare
from marketsched.config.cluster_section import shapes_from_data
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.play.running import run

CLUSTER = {
    "resources": {
        "cpu": {"unit": "core", "parts": 1000},
        "memory": {"unit": "GiB", "parts": 1024},
        "gpu": {"device": True, "parts": 1000},
    },
    "groups": [
        {"name": "a", "kind": "a100", "nodes": 2, "each": {"cpu": 96, "memory": 768, "gpu": 8}},
        {"name": "v", "kind": "v100", "nodes": 4, "each": {"cpu": 48, "memory": 384, "gpu": 4}},
        {"name": "c", "kind": "cpu", "nodes": 3, "each": {"cpu": 64, "memory": 256}},
    ],
}
TRAIN = {
    "name": "train-1",
    "birth": 3,
    "value": {"kind": "deadline", "value": 120, "deadline": 60},
    "arrival": 5,
    "shapes": [
        {"tasks": 1, "each": {"cpu": 48, "memory": 256, "gpu": 8}, "on": {"a100": 24}},
        {"tasks": 4, "each": {"cpu": 24, "memory": 128, "gpu": 4}, "per_node": 1, "on": {"v100": 36}},
        {"tasks": 1, "each": {"cpu": 64, "memory": 200}, "on": {"cpu": 50}, "worth": 0.9},
    ],
}
NOTEBOOK = {
    "name": "notebook",
    "birth": 4,
    "value": {"kind": "linear", "value": 4, "from": 10, "slope": 0.5, "deadline": 18},
    "arrival": 4,
    "shapes": [
        {
            "each": {"cpu": 4, "memory": 16, "gpu": 0.5},
            "on": ["a100", "v100"],
            "law": [[6, 0.5], [12, 0.5]],
            "speed": {"v100": 0.6},
        }
    ],
}
LISTED = {
    "name": "two jobs",
    "workload": {
        "kind": "cluster-jobs",
        "cluster": CLUSTER,
        "horizon": 90,
        "max_duration": 50,
        "max_value": 500,
        "max_delay": 80,
        "jobs": [TRAIN, NOTEBOOK],
    },
    "mechanism": {"name": "cluster-bid-price", "parameters": {"placement": "fgd"}},
}
MIX = {
    "name": "mix",
    "workload": {
        "kind": "cluster-mix",
        "cluster": CLUSTER,
        "rounds": 40,
        "per_round": 1.5,
        "sorts": [
            {"name": "train", "value": 60, "patience": 30, "shapes": TRAIN["shapes"][:2]},
            {"name": "tune", "share": 4, "value": 6, "shapes": [{"each": {"gpu": 1}, "on": {"a100": 6, "v100": 9}}]},
        ],
    },
    "mechanism": {"name": "cluster-bid-price", "parameters": {"forecast": "laws"}},
}


def shapes_to_data(shapes, law=(1.0,)):
    """Return shapes in the form that `shapes_from_data` reads."""
    rows = []
    for shape in shapes:
        row = {"tasks": shape.tasks, "each": dict(shape.each)}
        if shape.per_node is not None:
            row["per_node"] = shape.per_node
        row["on"] = {kind: list(d) if len(law) > 1 else d[0] for kind, d in shape.on.items()}
        if len(law) > 1:
            row["law"] = list(law)
        rows.append(row | {"worth": shape.worth})
    return rows


def changed(scenario, path, value):
    """Return a copy with the entry at a path replaced."""
    found = here = copy.deepcopy(scenario)
    *above, last = path
    for step in above:
        here = here[step]
    here[last] = value
    return found


def test_listed_jobs_run_in_the_shape_that_is_worth_most():
    result = run(LISTED, seed=1)
    jobs = result.jobs.set_index("name")
    assert jobs.loc["train-1", "value"] == 120 and jobs.loc["train-1", "completion"] == 5 + 24
    assert jobs.loc["notebook", "completion"] in (10, 16)  # started at once on a100
    assert result.outcome["bounds"]["dual"] >= result.outcome["welfare"] - 1e-9


@pytest.mark.slow
@pytest.mark.long
def test_mix_plays_and_equal_seeds_give_equal_runs():
    first, again, other = (run(MIX, seed=seed).outcome for seed in (1, 1, 2))
    assert first["welfare"] == again["welfare"] != other["welfare"]
    assert 0 < first["welfare"] <= first["bounds"]["dual"] * (1 + 1e-9)
    assert 0 < first["utilisation"] <= 1


def test_laws_are_other_draws_of_the_same_sorts():
    scenario = Scenario.from_dict(MIX)
    workload = scenario.workload_of(1)
    shapes = {job.truth.shapes[0].tasks for job in workload.jobs}
    assert shapes == {1} and workload.max_concurrency == 4 and workload.cluster.nodes == 9


def test_scenario_reads_its_own_yaml():
    for given in (LISTED, MIX):
        scenario = Scenario.from_dict(given)
        assert Scenario.from_dict(scenario.to_dict()) == scenario


def test_shapes_are_written_as_they_are_read():
    cluster = Scenario.from_dict(LISTED).workload.cluster.cluster()
    for entry in (TRAIN, NOTEBOOK):
        shapes, law = shapes_from_data(entry["shapes"], cluster, 50)
        assert shapes_from_data(shapes_to_data(shapes, law), cluster, 50) == (shapes, law)
    assert shapes[0].on == {"a100": (6, 12), "v100": (10, 20)} and law == (0.5, 0.5)


JOB = ("workload", "jobs", 0, "shapes", 0)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*JOB, "on"), {"a100": 51}, "jobs[0].shapes[0].on.a100 = 51: expected a whole number in [1, 50]"),
        ((*JOB, "each"), {"gpu": 1.5}, "jobs[0].shapes[0].each.gpu = 1.5: expected whole devices"),
        ((*JOB, "each"), {"cpu": 128}, "fits no node of a100: cpu 128 of 96"),
        ((*JOB, "on"), {"h100": 5}, "shapes[0].on.h100 is no kind of this cluster"),
        ((*JOB, "worth"), 2, "shapes[0].worth = 2"),
        ((*JOB, "wroth"), 1, "wroth is unknown"),
        ((*JOB, "law"), [0.5], "law"),
        (("workload", "jobs", 0, "shapes"), [], "shapes"),
        (("workload", "cluster", "groups", 0, "each"), {"disk": 1}, "groups[0].each.disk"),
        (("workload", "cluster", "pools"), [["a"], ["v"]], "pools"),
        (("workload", "cluster", "pools"), "rack", "pools = 'rack': expected 'kind', 'group', or a list of lists"),
        (("mechanism",), {"name": "vcg"}, "cluster-bid-price"),
        (("mechanism", "parameters"), {"placement": "tetris"}, "placement = 'tetris'"),
    ],
)
def test_faults_are_placed(path, value, said):
    with pytest.raises(MarketschedError) as caught:
        Scenario.from_dict(changed(LISTED, path, value)).setup(np.random.default_rng(1))
    assert said in str(caught.value)


def test_loads_of_a_cluster_are_refused():
    with pytest.raises(InvalidParameterError, match=r"^loads = 0.5: the nodes of a cluster with pools are given"):
        compare(Scenario.from_dict(MIX), ["cluster-first-come"], runs=1, loads=[0.5, 1.0])
