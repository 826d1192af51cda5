"""Pods of openb on a cluster of its kinds: what is recorded comes through, and what is made up is named."""

from collections import Counter

import numpy as np
import pytest

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.resources.shapes import options_of
from marketsched.worlds.openb import OpenbCluster
from marketsched.worlds.openb_nodes import GPU_KINDS, KINDS, openb_cluster
from marketsched.worlds.traces import get_trace


def test_the_whole_cluster_is_that_of_the_file(data_folder):
    nodes = get_trace("openb-nodes").read(data_folder)
    cluster = openb_cluster(6212 - 2, data_folder)  # two nodes with an A10 are left out
    assert cluster.nodes == 1523 - 2 and cluster.pool_names == KINDS
    kept = nodes[nodes["model"] != "A10"]
    expected = [kept["cpu_milli"].sum(), kept["memory_mib"].sum(), 1000 * kept["gpu"].sum()]
    assert cluster.layout.pool_size.sum(axis=0).tolist() == expected
    assert dict(zip(KINDS, np.diff(cluster.layout.pool_begin).tolist(), strict=True)) == {
        "cpu": 310, "T4": 404, "P100": 134, "V100": 85, "G2": 549, "G3": 39,
    }  # fmt: skip


@pytest.mark.parametrize("gpus", [20, 90, 700])
def test_a_scaled_cluster_has_every_kind_and_about_as_many_gpus(data_folder, gpus):
    cluster = openb_cluster(gpus, data_folder)
    found = cluster.layout.pool_size[:, 2].sum() / 1000
    assert cluster.pool_names == KINDS and gpus - 8 <= found <= gpus + 24  # a node of each kind, however small


def test_jobs_ask_for_what_their_pods_do(data_folder):
    pods = get_trace("openb-pods-kinds").read(data_folder).set_index("name")
    workload = OpenbCluster(jobs=400, load=1.3).build(3, data_folder)
    for job in workload.jobs:
        pod, (shape,) = pods.loc[job.tags["pod"]], job.truth.shapes
        gpu = pod["gpu_milli"] / 1000 if pod["num_gpu"] == 1 else pod["num_gpu"]
        assert shape.each["cpu"] * 1000 == pytest.approx(pod["cpu_milli"])
        assert shape.each["memory"] * 1024 == pytest.approx(pod["memory_mib"])
        assert shape.each.get("gpu", 0) == pytest.approx(gpu)
        models = pod["gpu_spec"].replace("V100M16", "V100").replace("V100M32", "V100").split("|")
        if set(models) & set(GPU_KINDS):
            assert set(shape.kinds) <= set(models)
        assert options_of([shape], workload.cluster).pool.size >= len(shape.kinds)  # every kind named has a node for it
        base = min(144, max(1, int(np.ceil((pod["deletion_time"] - pod["scheduled_time"]) / 300))))
        speeds = {"cpu": 1.0, "T4": 0.5, "P100": 0.6, "V100": 1.0, "G2": 1.0, "G3": 1.3}
        for kind, (d,) in shape.on.items():
            limits = base, int(np.ceil(base / speeds[kind]))
            assert (min(limits) <= d <= max(limits)) if gpu else d == base
    births = [job.truth.birth for job in workload.jobs]
    assert births == sorted(births) and 1 <= births[0] and births[-1] <= 432
    assert max(job.truth.value.last for job in workload.jobs) <= workload.horizon + 1


def test_what_is_made_up_is_named_and_follows_the_keys(data_folder):
    workload = OpenbCluster(jobs=300, load=1, speed={"T4": 0.25}, speed_spread=[1, 1], alternatives="any").build(
        4, data_folder
    )
    assert {name for name in workload.notes if "(made up)" in name} == {
        "speeds (made up)", "values (made up)", "deadlines (made up)", "owners (made up)",
    }  # fmt: skip
    assert workload.notes["speeds (made up)"].startswith("T4 0.25,")
    assert workload.notes["kinds accepted"] == "any"
    for job in workload.jobs:
        (shape,) = job.truth.shapes
        if "gpu" in shape.each and {"T4", "G2"} <= set(shape.kinds):
            assert shape.duration_on("T4") == 4 * shape.duration_on("G2")


def test_more_alternatives_are_added_to_the_same_jobs(data_folder):
    """Jobs with one, two, three kinds are the same jobs, so that a further kind can be priced by pairs."""
    one, two, three = (
        OpenbCluster(jobs=300, alternatives=each).build(5, data_folder).jobs for each in ("none", "two", "three")
    )
    counted = Counter()
    for a, b, c in zip(one, two, three, strict=True):
        assert a.truth.value == b.truth.value == c.truth.value
        kinds = [set(job.truth.shapes[0].kinds) for job in (a, b, c)]
        assert kinds[0] <= kinds[1] <= kinds[2]
        if "gpu" in a.truth.shapes[0].each:
            counted[len(kinds[0])] += 1
    assert set(counted) == {1}


def test_equal_seeds_give_equal_jobs_and_all_seeds_one_cluster(data_folder):
    a, b, c = (OpenbCluster(jobs=100).build(seed, data_folder) for seed in (1, 1, 2))
    assert [(job.name, job.owner, repr(job.truth)) for job in a.jobs] == [
        (job.name, job.owner, repr(job.truth)) for job in b.jobs
    ]
    assert a.cluster == c.cluster and repr(a.jobs[0].truth) != repr(c.jobs[0].truth)


@pytest.mark.slow
def test_what_is_known_in_advance_are_other_draws_of_the_same_rules(data_folder):
    scenario = Scenario.from_dict({"name": "x", "workload": {"kind": "openb", "jobs": 200}})
    built = scenario.workload_of(7, data_folder)
    stream = np.random.default_rng(np.random.SeedSequence(7)).spawn(3)[0]
    laws = scenario.workload.statement_laws(built, stream, data_folder)
    assert len(laws) == pytest.approx(800, abs=10)
    assert {law.cases[0][1] for law in laws} == {1 / 4}
    real = {repr(job.truth) for job in built.jobs}
    assert sum(repr(law.cases[0][0]) in real for law in laws) < 6  # not the jobs themselves
    again = OpenbCluster(jobs=200).build(np.random.default_rng(np.random.SeedSequence(7)).spawn(3)[0], data_folder)
    assert {repr(job.truth) for job in again.jobs} == real


@pytest.mark.parametrize(
    ("key", "value", "legal"),
    [
        ("alternatives", "some", "recorded"),
        ("speed", {"A10": 1.0}, "T4"),
        ("speed", {"T4": 0}, r"speeds in \[0.01, 100\]"),
        ("speed_spread", [0.5, 0.2], "lowest <= highest"),
        ("load", 0, "> 0|above 0|0, inf"),
    ],
)
def test_a_bad_key_is_named(key, value, legal):
    with pytest.raises(InvalidParameterError, match=f"{key}.*{legal}"):
        Scenario.from_dict({"name": "x", "workload": {"kind": "openb", key: value}})
