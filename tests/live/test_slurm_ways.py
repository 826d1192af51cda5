"""Ways to run as options of sbatch: the shapes they are, what is refused, and what is then taken back."""

import pytest

from live_tools import refused
from marketsched.live.slurm import SlurmError
from marketsched.live.slurm_demand import SlurmNode
from marketsched.live.slurm_nodes import cluster_of
from marketsched.live.slurm_submitting import submit_ways, way_of, ways_of
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError

CLUSTER = {
    "resources": {"cpu": {}, "memory": {}, "gpu": {}},
    "groups": [{"kind": "a100"}, {"kind": "v100"}, {"kind": "cpu"}],
}
MARKET = {"cluster": CLUSTER, "round": 3, "clock": {"round_seconds": 600.0}}
SHAPES = {
    "-N2 -c4 --mem=8G --gres=gpu:v100:2 -t 3:00:00": {
        "each": {"cpu": 4, "memory": 8.0, "gpu": 2}, "on": {"v100": 18}, "tasks": 2, "per_node": 1,
    },
    "--mem=512M --gres=gpu:1 -C '[a100|v100]' --time=15": {
        "each": {"cpu": 1, "memory": 0.5, "gpu": 1}, "on": {"a100": 2, "v100": 2},
    },
    "--ntasks-per-node=3 -c2 --mem=1G --on=cpu=1-0,a100=90 --worth=0.9": {
        "each": {"cpu": 6, "memory": 1.0}, "on": {"cpu": 144, "a100": 9}, "worth": 0.9,
    },
}  # fmt: skip
REFUSED = {
    "--mem=1G --gpus=2 -t9": "unrecognized arguments: --gpus=2",
    "-c2 --gres=gpu:a100:1 -t9": "--mem is missing",
    "--mem=lots --gres=gpu:a100:1 -t9": "--mem = 'lots'",
    "--mem=1G --gres=gpu:a100:1": "--time is missing, for a100",
    "--mem=1G --gres=gpu:a100:1 -t soon": "--time = 'soon'",
    "--mem=1G --gres=gpu:1 -t9": "expected a type of GPU, a constraint or --on",
    "--mem=1G --on=h100 -t9": "kinds of nodes = 'h100'",
    "-N0 --mem=1G --on=cpu -t9": "nodes = 0",
    "--mem=1G --on='cpu -t9": "No closing quotation",
}


@pytest.mark.parametrize("text", SHAPES)
def test_options_of_sbatch_are_a_shape(text):
    assert way_of(text, MARKET).shape == SHAPES[text]


def test_the_limit_given_to_slurm_is_the_longest_time():
    assert "--time=1440" in way_of("--mem=1G --on=cpu=1-0,a100=90", MARKET).options


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_way_is_refused(text):
    found = str(refused(InvalidReportError, ways_of, {}, ["--mem=1G --on=cpu -t9", text], MARKET))
    assert REFUSED[text] in found


def test_identical_nodes_and_shapes_of_the_statement_are_refused():
    alone = {key: MARKET[key] for key in ("round", "clock")}
    assert "identical nodes" in str(refused(InvalidReportError, ways_of, {}, ["-t9"], alone))
    assert "shapes" in str(refused(InvalidReportError, ways_of, {"shapes": []}, ["-t9"], MARKET))


class Sides:
    """A market and a Slurm that takes so many jobs."""

    def __init__(self, most):
        self.most, self.calls = most, []

    def submit(self, sow, *, name=None, owner=None):
        self.calls.append(("submit", len(sow["shapes"])))
        return {"job": "ann.a"}

    def withdraw(self, job):
        self.calls.append(("withdraw", job))

    def cancel(self, number):
        self.calls.append(("cancel", number))

    def run(self, *command, text=None):
        self.most -= 1
        if self.most < 0:
            raise SlurmError("no more")
        self.calls.append(next(word for word in command if word.startswith("--comment")))
        return f"{len(self.calls)}\n"


def test_what_slurm_refuses_is_taken_back_on_both_sides():
    ways = ways_of({}, [*SHAPES][:2], MARKET)
    sides = Sides(2)
    assert submit_ways({}, ways, ["run.sh"], sides, sides) == ("ann.a", [2, 3])
    assert sides.calls == [("submit", 2), "--comment=market:ann.a/0", "--comment=market:ann.a/1"]
    sides = Sides(1)
    with pytest.raises(SlurmError, match="no more"):
        submit_ways({}, ways, ["run.sh"], sides, sides)
    assert sides.calls[2:] == [("cancel", 2), ("withdraw", "ann.a")]


def test_kinds_of_nodes_by_gpus_partitions_or_features():
    nodes = [
        SlurmNode("n10", 8, 1024, {"a100": 2}, ("fast",), ("market", "big")),
        SlurmNode("n2", 8, 1024, {"a100": 2}, ("fast",), ("big", "market")),
        SlurmNode("n3", 4, 512, {}, ("slow",), ("market", "small")),
        SlurmNode("n4", 8, 512, {}, ("slow",), ("market", "small")),
    ]
    for pools, names in {
        "gres": ["a100", "cpu", "cpu-2"], "partition": ["big", "small", "small-2"],
        "feature": ["fast", "slow", "slow-2"],
    }.items():  # fmt: skip
        groups = cluster_of(nodes, pools)["groups"]
        assert [group["name"] for group in groups] == names
        assert [(group["nodes"], group["each"]["cpu"]) for group in groups] == [(2, 8), (1, 4), (1, 8)]
    mixed = [SlurmNode("n1", 1, 1024, {"a100": 1, "v100": 1}, (), ("market",))]
    assert "GPUs of one type a node" in str(refused(InvalidParameterError, cluster_of, mixed))
    assert "expected a feature" in str(refused(InvalidParameterError, cluster_of, mixed, "feature"))
