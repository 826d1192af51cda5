"""A cluster proposed for a file of ``sacct``: it holds what ran at once, and the scenario plays."""

import pytest

from marketsched.config.proposed_cluster import proposed_scenario
from marketsched.config.scenario import Scenario
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.requests import requests_table

HEADER = "JobIDRaw|User|Partition|Submit|Start|End|State|ReqTRES|Constraints"
DAY = "2026-03-01T"


def row(job, partition, begin, end, request, constraints=""):
    return f"{job}|ann|{partition}|{DAY}08:00:00|{DAY}{begin}:00|{DAY}{end}:00|COMPLETED|{request}|{constraints}"


ROWS = (
    row(1, "gpu", "10:00", "12:00", "cpu=16,gres/gpu:a100=8,gres/gpu=8,mem=128G,node=2"),  # 4 GPUs on each of 2 nodes
    row(2, "gpu", "11:00", "13:00", "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=200G,node=1"),  # beside it: 10 of 4 a node
    row(3, "gpu", "12:00", "14:00", "cpu=4,gres/gpu:a100=4,gres/gpu=4,mem=8G,node=1"),  # begins as the first one ends
    row(4, "gpu", "10:00", "11:00", "cpu=1,gres/gpu=1,mem=1G,node=1"),  # type not named: the usual one of its partition
    row(5, "old", "10:00", "11:00", "cpu=6,gres/gpu=2,mem=5000M,node=1", "v100&ib"),  # no job names v100 as its type
    row(6, "cpu", "10:00", "11:00", "cpu=40,mem=1G,node=1"),
    row(7, "cpu", "10:30", "11:30", "cpu=2,mem=3G,node=1"),
)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "my jobs.txt"
    found.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return found


def test_kinds_are_as_large_as_requests_and_as_many_as_ran_at_once(path):
    text = proposed_scenario(path)
    assert parse_yaml(text, "it")["workload"]["cluster"]["groups"] == [
        {"name": "a100", "kind": "a100", "nodes": 3, "each": {"cpu": 8, "memory": 200, "gpu": 4}},
        {"name": "cpu", "kind": "cpu", "nodes": 2, "each": {"cpu": 40, "memory": 3}},
        {"name": "old", "kind": "old", "nodes": 1, "each": {"cpu": 6, "memory": 5, "gpu": 2}},
    ]
    assert "7 jobs" in text.splitlines()[0] and "too low" in text


def test_the_proposed_scenario_plays_every_job(path):
    built = Scenario.from_dict(parse_yaml(proposed_scenario(path), "it")).workload_of(0)
    assert len(built.jobs) == len(ROWS) and not any("left out" in str(name) for name in built.notes)


def test_what_was_left_out_is_said(path):
    path.write_text("\n".join([HEADER, *ROWS, ROWS[0], row(9, "cpu", "10:30", "11:30", "cpu=x,mem=3G,node=1")]) + "\n")
    comments = [line for line in proposed_scenario(path).splitlines() if line.startswith("# rows left out")]
    assert len(comments) == 2 and any("cpu=x" in line for line in comments)


PODS = """namespace,name,creationTimestamp,startTime,completionTime,cpu,memory,nvidia.com/gpu,status
a,x,2026-03-02T00:00:00Z,2026-03-02T00:01:00Z,2026-03-02T01:11:00Z,500m,512Mi,0,Succeeded
b,y,2026-03-02T00:05:00Z,2026-03-02T00:05:00Z,2026-03-02T01:05:00Z,16,32Gi,4,Failed
b,z,2026-03-02T00:06:00Z,2026-03-02T00:06:00Z,2026-03-02T01:06:00Z,2,1G,1,Succeeded
b,w,2026-03-02T00:06:00Z,,,2,1G,1,Pending
"""
PBS = "03/02/2026 01:20:00;E;{0}.pbs;user=ann queue=q ctime=1772410200 start=1772410800 end=1772414400 Exit_status=0 "
PBS += "Resource_List.ncpus=32 Resource_List.ngpus={1} Resource_List.mem=64gb Resource_List.nodect=2\n"


SERVICES = """sn,role,app_name,cpu_request,gpu_request,memory_request,creation_time,scheduled_time,deletion_time
i0,HN,app_0,12,1,120.0,,,
i1,CN,app_1,64,0,320.0,1200.0,1210.0,2410.0
i2,HN,app_2,8,1,40.0,0.0,0.0,6000.0
i3,HN,app_2,8,1,40.0,3000.0,3000.0,
"""  # of Alibaba: one began before the trace, one has not ended


@pytest.mark.parametrize(
    ("text", "amounts", "groups"),
    [
        (SERVICES, [[1, 8, 40, 1], [1, 64, 320, 0]], [("CN", 1, 0), ("HN", 1, 1)]),
        (PODS, [[1, 0.5, 0.5, 0], [1, 16, 32, 4], [1, 2, 1, 1]], [("gpu", 2, 4), ("node", 1, 0)]),
        (PBS.format(1, 4) + PBS.format(2, 0), [[2, 16, 32, 2], [2, 16, 32, 0]], [("q", 4, 2)]),
    ],
)
def test_gpus_of_pods_and_of_pbs_become_a_cluster_with_every_job(text, amounts, groups, tmp_path):
    (tmp_path / "log").write_text(text)
    jobs, _ = requests_table(tmp_path / "log")
    assert jobs[["tasks", "cpu", "memory", "gpu"]].values.tolist() == amounts
    scenario = parse_yaml(proposed_scenario(tmp_path / "log"), "it")
    found = scenario["workload"]["cluster"]["groups"]
    assert [(each["name"], each["nodes"], each["each"].get("gpu", 0)) for each in found] == groups
    assert len(Scenario.from_dict(scenario).workload_of(0).jobs) == len(amounts)


def test_without_requests_nothing_is_proposed(tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("JobIDRaw|Submit|Elapsed|NNodes\n1|2026-03-01T10:00:00|00:10:00|1\n")
    with pytest.raises(TraceError, match="no field reqtres"):
        proposed_scenario(other)
