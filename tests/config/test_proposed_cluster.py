"""A cluster proposed for a file of ``sacct``: it holds what ran at once, and the scenario plays."""

import pytest

from marketsched.config.proposed_cluster import proposed_scenario
from marketsched.config.scenario import Scenario
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms.errors import TraceError

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


def test_without_requests_nothing_is_proposed(tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("JobIDRaw|Submit|Elapsed|NNodes\n1|2026-03-01T10:00:00|00:10:00|1\n")
    with pytest.raises(TraceError, match="no field reqtres"):
        proposed_scenario(other)
