"""Instances of services as jobs with shapes: Alibaba's table of 2025, on a cluster that is written out."""

import numpy as np
import pytest

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.worlds.logs.instances import instance_table

HEADER = (
    "instance_sn,role,app_name,cpu_request,gpu_request,memory_request,disk_request,"
    "creation_time,scheduled_time,deletion_time"
)
ROWS = (
    "i0,HN,app_0,12,1,120.0,640.0,,,",  # there before the trace
    "i1,CN,app_1,64,0,320.0,255.0,1200.0,1210.0,2410.0",
    "i2,HN,app_2,8,1,40.0,85.0,0.0,0.0,6000.0",
    "i3,HN,app_2,8,1,40.0,85.0,3000.0,3000.0,",  # not ended
    "i4,CN,app_1,64,0,320.0,255.0,4000.0,4000.0,4000.0",  # no run
    "i5,CN,app_3,192,0,320.0,255.0,4000.0,4000.0,9000.0",  # larger than a node
    "i6,HN,app_4,8,1,40.0,85.0,6000.0,6000.0,12000.0",
)
CLUSTER = {
    "resources": {"cpu": {}, "memory": {}, "gpu": {"device": True}},
    "groups": [
        {"name": "h", "kind": "hn", "nodes": 1, "each": {"cpu": 64, "memory": 512, "gpu": 2}},
        {"name": "c", "kind": "cn", "nodes": 1, "each": {"cpu": 128, "memory": 1024}},
    ],
}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "instances.csv"
    found.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return found


def built(path, **more):
    workload = {"kind": "instance-shapes", "path": str(path), "cluster": CLUSTER, **more}
    return Scenario.from_dict({"name": "x", "workload": workload}).workload_of(0)


def test_an_instance_runs_on_nodes_of_its_role_from_its_creation(path):
    found = built(path)
    read = [(job.owner, job.truth.shapes[0].kinds, job.truth.birth, job.duration) for job in found.jobs]
    assert read == [("app_2", ("hn",), 1, 10), ("app_1", ("cn",), 3, 2), ("app_4", ("hn",), 11, 10)]
    assert dict(found.jobs[1].truth.shapes[0].each) == {"cpu": 64.0, "memory": 320.0}
    assert found.notes["rows left out: began before the trace, or not ended in it"] == 2
    assert found.notes["rows left out: no run or no resources requested"] == 1
    assert found.notes["jobs left out: no nodes of a kind they accept hold them"] == 1


def test_a_load_is_that_of_gpus_until_the_last_birth(path):
    # 20 GPU-rounds are asked for: at load .5 two GPUs need 20 rounds, at load 2 they need 5
    assert [job.truth.birth for job in built(path, load=0.5).jobs] == [1, 5, 21]
    assert [job.truth.birth for job in built(path, load=2.0).jobs] == [1, 2, 6]


def test_a_part_of_the_jobs_is_drawn_by_the_seed(tmp_path):
    rows = [f"i{i},HN,app_{i},1,1,1.0,1.0,{600 * i}.0,{600 * i}.0,{600 * i + 600}.0" for i in range(400)]
    path = tmp_path / "many.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    scenario = Scenario.from_dict(
        {"name": "x", "workload": {"kind": "instance-shapes", "path": str(path), "cluster": CLUSTER, "kept": 0.25}}
    )
    first, again, other = (scenario.workload_of(seed) for seed in (0, 0, 1))
    assert [job.name for job in first.jobs] == [job.name for job in again.jobs] != [job.name for job in other.jobs]
    for found in (first, other):
        assert abs(len(found.jobs) - 100) < 5 * np.sqrt(400 * 0.25 * 0.75)
        assert found.notes["jobs kept, a draw"] == len(found.jobs)


def test_what_is_missing_is_named(path, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("instance_sn,role\ni,HN\n")
    with pytest.raises(TraceError, match="no column creation_time, scheduled_time"):
        instance_table(other)
    with pytest.raises(InvalidParameterError, match="no job of the file fits"):
        built(path, cluster={**CLUSTER, "groups": [{"name": "t", "kind": "t", "nodes": 1, "each": {"cpu": 1}}]})
