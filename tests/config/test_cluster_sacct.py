"""Jobs of Slurm with what they asked for, as jobs with shapes on a cluster that is written out."""

import pytest

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.worlds.logs.tres import tres_table

HEADER = "JobIDRaw|User|Partition|Submit|Start|End|State|ReqTRES|Constraints"
ROWS = (
    "1|ann|gpu|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T12:05:00|COMPLETED|billing=9,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=128G,node=2|",
    "1.batch|ann|gpu|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T12:05:00|COMPLETED|cpu=16|",
    "2|bob|gpu|2026-03-01T10:20:00|2026-03-01T10:20:00|2026-03-01T10:50:00|FAILED|cpu=4,gres/gpu=1,mem=4000M,node=1|a100|v100",
    "3|bob|cpu|2026-03-01T10:30:00|2026-03-01T10:30:00|2026-03-01T11:30:00|COMPLETED|cpu=2,mem=1G,node=1|",
    "4|eve|gpu|2026-03-01T10:40:00|||PENDING|cpu=2,mem=1G,node=1|",
    "5|eve|gpu|2026-03-01T10:50:00|2026-03-01T10:50:00|2026-03-01T11:50:00|COMPLETED|cpu=2,gres/gpu:h100=1,mem=1G,node=1|",
)
CLUSTER = {
    "resources": {
        "cpu": {"parts": 1000}, "memory": {"parts": 1024}, "gpu": {"device": True, "parts": 1000},
    },
    "groups": [
        {"name": "a", "kind": "a100", "nodes": 2, "each": {"cpu": 16, "memory": 256, "gpu": 4}},
        {"name": "v", "kind": "v100", "nodes": 1, "each": {"cpu": 8, "memory": 64, "gpu": 2}},
        {"name": "c", "kind": "cpu", "nodes": 1, "each": {"cpu": 8, "memory": 64}},
    ],
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "jobs.txt"
    rows = [row.replace("a100|v100", "a100&v100") for row in ROWS]
    found.write_text("\n".join([HEADER, *rows]) + "\n")
    return found


def test_amounts_are_those_of_one_node(path):
    table, counted = tres_table(path)
    assert table[["tasks", "cpu", "memory", "gpu", "gpu_type"]].values.tolist() == [
        [2, 8.0, 64.0, 2.0, "a100"], [1, 4.0, 4000 / 1024, 1.0, ""], [1, 2.0, 1.0, 0.0, ""], [1, 2.0, 1.0, 1.0, "h100"],
    ]  # fmt: skip
    assert table["run_s"].tolist() == [7200.0, 1800.0, 3600.0, 3600.0]
    assert counted == {"rows left out: steps of jobs": 1, "rows left out: not ended": 1}


def test_kinds_come_from_type_constraints_and_partition(path):
    workload = {"kind": "sacct-shapes", "path": str(path), "cluster": CLUSTER}
    built = Scenario.from_dict({"name": "x", "workload": workload}).workload_of(0)
    first, second, third = (job.truth.shapes[0] for job in built.jobs)
    assert (first.tasks, first.per_node, first.kinds, first.each["gpu"]) == (2, 1, ("a100",), 2)
    assert second.kinds == ("a100", "v100") and second.each["memory"] == 4000 / 1024
    assert third.kinds == ("cpu",) and "gpu" not in third.each  # as its partition is called
    assert built.notes["jobs left out: no nodes of a kind they accept hold them"] == 1  # there is no h100
    assert [job.duration for job in built.jobs] == [12, 3, 6]
    assert {name for name in built.notes if "made up" in str(name)} == {"values (made up)", "deadlines (made up)"}


def test_what_is_missing_is_named(path, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("JobIDRaw|Submit|Elapsed\n1|2026-03-01T10:00:00|00:10:00\n")
    with pytest.raises(TraceError, match="no field reqtres"):
        tres_table(other)
    tiny = {**CLUSTER, "groups": [{"name": "t", "kind": "t4", "nodes": 1, "each": {"cpu": 1, "memory": 1}}]}
    scenario = Scenario.from_dict(
        {"name": "x", "workload": {"kind": "sacct-shapes", "path": str(path), "cluster": tiny}}
    )
    with pytest.raises(InvalidParameterError, match="no job of the file fits"):
        scenario.workload_of(0)
