"""Jobs of Slurm with what they asked for, as jobs with shapes on a cluster that is written out."""

import json

import pytest

from marketsched import run
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.worlds.logs.delimited import REPEATED
from marketsched.worlds.logs.requests import requests_table

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
    found.write_text("\n".join([HEADER, *ROWS]) + "\n")  # row 2 has a | of its own, as sacct -P prints it
    return found


def test_amounts_are_those_of_one_node(path):
    table, counted = requests_table(path)
    assert table[["tasks", "cpu", "memory", "gpu", "gpu_type"]].values.tolist() == [
        [2, 8.0, 64.0, 2.0, "a100"], [1, 4.0, 4000 / 1024, 1.0, ""], [1, 2.0, 1.0, 0.0, ""], [1, 2.0, 1.0, 1.0, "h100"],
    ]  # fmt: skip
    assert table["run_s"].tolist() == [7200.0, 1800.0, 3600.0, 3600.0]
    assert counted == {"rows left out: steps of jobs": 1, "rows left out: jobs that had not ended": 1}


def test_rows_of_queries_that_overlap_count_once(path):
    once = requests_table(path)[0]
    path.write_text("\n".join([HEADER, *ROWS, *ROWS[2:4]]) + "\n")
    table, counted = requests_table(path)
    assert table.equals(once) and counted[REPEATED] == 2


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


@pytest.mark.parametrize(
    "request_, shown",
    [
        ("cpu=2,mem=abc,node=1", "mem=abc"),
        ("cpu=-4,mem=1G,node=1", "cpu=-4"),
        ("CPU=8,mem=1G,node=1", "CPU=8"),
        ("cpu=2,gres/gpu=many,node=1", "gres/gpu=many"),
    ],
)
def test_an_amount_that_cannot_be_read_leaves_its_row_out_and_is_shown(path, request_, shown):
    path.write_text(path.read_text().replace("cpu=2,mem=1G,node=1|\n4", f"{request_}|\n4"))
    table, counted = requests_table(path)
    (what,) = (each for each in counted if each.startswith("rows left out: not understood"))
    assert counted[what] == 1 and "line 5: ReqTRES = " in what and shown in what
    assert table["id"].tolist() == ["1", "2", "5"]


def test_gpus_are_read_in_either_spelling_and_kinds_in_either_case(path):
    text = path.read_text().replace("gres/gpu:a100=4,gres/gpu=4", "gres/gpu:A100:4")
    path.write_text(text.replace("a100|v100", "A100|V100"))
    assert requests_table(path)[0][["gpu", "gpu_type"]].values.tolist()[0] == [2.0, "A100"]
    workload = {"kind": "sacct-shapes", "path": str(path), "cluster": CLUSTER}
    jobs = Scenario.from_dict({"name": "x", "workload": workload}).workload_of(0).jobs
    assert [job.truth.shapes[0].kinds for job in jobs] == [("a100",), ("a100", "v100"), ("cpu",)]


def test_a_job_is_worth_the_same_whatever_nodes_a_change_adds(path):
    scenario = Scenario.from_dict(
        {"name": "x", "workload": {"kind": "sacct-shapes", "path": str(path), "cluster": CLUSTER}}
    )
    more = scenario.with_changes("workload.cluster.groups.0.nodes=9")
    values = [[job.truth.value.highest for job in each.workload_of(0).jobs] for each in (scenario, more)]
    assert values[0] == values[1]
    poorer = {
        **CLUSTER,
        "resources": {"cpu": {"parts": 1000}},
        "groups": [{**CLUSTER["groups"][2], "each": {"cpu": 8}}],
    }
    assert scenario.with_changes(f"workload.cluster={json.dumps(poorer)}").workload_of(0).jobs  # no memory to value on
    edited = {**CLUSTER, "groups": [{**CLUSTER["groups"][0], "nodes": 9}, *CLUSTER["groups"][1:]]}
    other = Scenario.from_dict(
        {"name": "x", "workload": {"kind": "sacct-shapes", "path": str(path), "cluster": edited}}
    )
    assert [job.truth.value.highest for job in other.workload_of(0).jobs] != values[0]  # says no `valued_on`
    with pytest.raises(InvalidParameterError, match=r"valued_on.gpus = 3.*cpu, memory, gpu"):
        scenario.with_changes("workload.valued_on={gpus: 3}").workload_of(0)


def test_what_is_cut_is_counted(path):
    workload = {"kind": "sacct-shapes", "path": str(path), "cluster": CLUSTER, "most_jobs": 3, "max_duration": 4}
    notes = Scenario.from_dict({"name": "x", "workload": workload}).workload_of(0).notes
    assert notes["jobs left out: before the last 3 (most_jobs)"] == 1
    assert notes["runs cut to 4 rounds (max_duration)"] == 2  # 5's too, which has no node


def test_jobs_that_ask_for_no_device_leave_those_alone_whatever_the_order_of_groups(path):
    path.write_text(path.read_text().replace("bob|cpu|", "bob|batch|"))  # accepts every kind
    for groups in (CLUSTER["groups"], CLUSTER["groups"][::-1]):
        workload = {"kind": "sacct-shapes", "path": str(path), "cluster": {**CLUSTER, "groups": groups}}
        found = run({"name": "x", "workload": workload, "mechanism": {"name": "cluster-first-come"}})
        jobs = found.jobs.set_index("id")
        assert jobs.loc["3", "pool"] == "cpu" and jobs.loc["1", "pool"] == "a100"


def test_what_is_missing_is_named(path, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("JobIDRaw|Submit|Elapsed\n1|2026-03-01T10:00:00|00:10:00\n")
    with pytest.raises(TraceError, match="no field reqtres"):
        requests_table(other)
    tiny = {**CLUSTER, "groups": [{"name": "t", "kind": "t4", "nodes": 1, "each": {"cpu": 1, "memory": 1}}]}
    scenario = Scenario.from_dict(
        {"name": "x", "workload": {"kind": "sacct-shapes", "path": str(path), "cluster": tiny}}
    )
    with pytest.raises(InvalidParameterError, match="no job of the file fits"):
        scenario.workload_of(0)


def test_a_load_is_that_of_gpus_until_the_last_birth_and_a_part_is_drawn_by_the_seed(path):
    workload = {"kind": "sacct-shapes", "path": str(path), "cluster": CLUSTER}

    def births(seed=0, **more):
        built = Scenario.from_dict({"name": "x", "workload": {**workload, **more}}).workload_of(seed)
        return [job.truth.birth for job in built.jobs]

    assert births() == [1, 3, 4] and births(load=0.5) == [1, 7, 11]  # 51 GPU-rounds on 10 GPUs
    kept = [births(seed, kept=0.5) for seed in range(1, 9)]
    assert len(set(map(len, kept))) > 1 and births(3, kept=0.5) == kept[2]
