"""Jobs with several ways to run, before a real Slurm with GPUs of two kinds: one of them runs, where it is booked."""

import json

import pytest

from marketsched.live.client import LiveClient
from marketsched.live.slurm import Slurm
from marketsched.live.slurm_bridge import SlurmBridge
from marketsched.live.slurm_nodes import cluster_of, nodes_by_name
from marketsched.live.slurm_submitting import submit_ways, ways_of
from marketsched.mechanisms.errors import InvalidParameterError
from slurm_trials import WITH_SLURM, Trial, until

pytestmark = [WITH_SLURM, pytest.mark.slow]

EQUIPMENT = {"cpus": 4, "memory": 1024, "gpus": ["a100:2", "a100:2", "v100:2"]}
CLUSTER = {
    "resources": {"cpu": {"unit": "CPU", "parts": 1}, "memory": {"unit": "GiB", "parts": 1024},
                  "gpu": {"device": True, "parts": 1}},
    "groups": [
        {"name": "a100", "kind": "a100", "nodes": 2, "each": {"cpu": 4, "memory": 1, "gpu": 2}},
        {"name": "v100", "kind": "v100", "nodes": 1, "each": {"cpu": 4, "memory": 1, "gpu": 2}},
    ],
}  # fmt: skip
PRICES = {"a100": {"gpu": 1.5}, "v100": {"gpu": 0.5}}
CONFIG = {"mechanism": "cluster-first-come", "cluster": CLUSTER, "parameters": {"prices": PRICES}}
WIDE = "-N2 -c2 --mem=512M --gres=gpu:a100:2 -t2"
HALF = "-N1 -c2 --mem=256M --gres=gpu:a100:1 -t2"
OLD = "-N1 -c2 --mem=512M --gres=gpu:v100:2 -t3"


class Looking(Slurm):
    """Slurm of a user whose market has a bridge that looks before each submission."""

    def __init__(self, trial):
        super().__init__(trial.slurm.environment)
        self.bridge = trial.bridge

    def run(self, *command, text=None):
        if command[0] == "sbatch":
            self.bridge.step()
        return super().run(*command, text=text)


def trial_on(folder, **more):
    return Trial(folder, 3, config=CONFIG, equipment=EQUIPMENT, **more)


def submit(trial, label, *ways, script="exec sleep 60", worth=50.0):
    """Submit a job with these ways to run; return it, and Slurm's numbers."""
    path = trial.folder / f"{label}.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    with LiveClient(trial.url, trial.token) as client:
        market = client.market(rounds=0)
        curve = {"kind": "deadline", "value": worth, "deadline": market["round"] + 20}
        said = {"value": curve, "arrival": market["round"]}
        known = ways_of(said, ways, market)
        options = ["--output=/dev/null", "--chdir=/"]
        return submit_ways(said, known, [str(path)], client, Looking(trial), name=label, options=options)


def shown(trial, number):
    """Return what Slurm lists of a job."""
    rows = json.loads(trial.slurm.run("squeue", "--json"))["jobs"]
    return next(row for row in rows if row["job_id"] == number)


def test_the_nodes_of_slurm_are_the_cluster_and_jobs_run_where_they_are_booked(tmp_path):
    with trial_on(tmp_path) as trial:
        nodes = trial.slurm.nodes("market")
        assert cluster_of(nodes) == CLUSTER
        assert [node.name for node in nodes_by_name(CLUSTER, nodes).values()] == ["n1", "n2", "n3"]
        other = {**CLUSTER, "groups": [{**CLUSTER["groups"][0], "nodes": 3}, CLUSTER["groups"][1]]}
        with pytest.raises(InvalidParameterError, match="group a100: nodes = 3: expected as Slurm has them: 2"):
            nodes_by_name(other, nodes)
        first, on_a = submit(trial, "wide", WIDE, OLD)  # 50 by two rounds later at 12 credits, or by three at 3
        assert [trial.slurm_state(number) for number in on_a] == ["HELD", "HELD"]
        assert trial.state(first) == "submitted"  # its last way came behind the bridge's last look
        second, on_b = submit(trial, "half", HALF)
        trial.bridge.step()
        assert trial.state(first) == trial.state(second) == "arrived"
        trial.operator.advance()
        trial.step_until(lambda: trial.slurm_state(on_a[1]) == trial.slurm_state(on_b[0]) == "RUNNING")
        assert trial.slurm_state(on_a[0]) == "CANCELLED"
        assert "booked shape 1" in shown(trial, on_a[0])["admin_comment"]
        places = {"a100-0": "n1", "a100-1": "n2", "v100-0": "n3"}
        for job, number in ((first, on_a[1]), (second, on_b[0])):
            booked = {places[name] for name in trial.operator.job(job)["booking"]["nodes"]}
            assert {shown(trial, number)["nodes"], shown(trial, number)["required_nodes"]} == booked
        for number in (on_a[1], on_b[0]):
            trial.slurm.cancel(number)
        trial.step_until(lambda: trial.state(first) == trial.state(second) == "completed")
        assert [trial.operator.job(job)["outcome"] for job in (first, second)] == ["failed", "failed"]
        assert [trial.operator.job(job)["charge"] for job in (first, second)] == [1.0, 1.5]  # of one round each


def test_what_asks_for_more_than_its_shape_is_cancelled(tmp_path):
    with trial_on(tmp_path) as trial:
        job, (number,) = submit(trial, "one", HALF)
        options = ["--hold", "-N1", "-t2", "--output=/dev/null", "--chdir=/", f"--comment=market:{job}/0"]
        cases = {
            "announced with 1 GPUs a node, not 2": ["-c2", "--mem=256M", "--gres=gpu:a100:2"],
            "announced with 2 CPUs a node, not 3": ["-c3", "--mem=256M", "--gres=gpu:a100:1"],
            "announced with 256 MiB a node, not 1024": ["-c2", "--gres=gpu:a100:1"],
            "GPUs of type v100, and may be booked on a100": ["-c2", "--mem=256M", "--gres=gpu:v100:1"],
            "not --exclusive": ["-c2", "--mem=256M", "--gres=gpu:a100:1", "--exclusive"],
        }
        numbers = {why: trial.slurm.submit("#!/bin/sh\n", *options, *more) for why, more in cases.items()}
        trial.bridge.step()
        for why, other in numbers.items():
            assert trial.slurm_state(other) == "CANCELLED" and why in shown(trial, other)["admin_comment"]
        assert trial.slurm_state(number) == "HELD" and trial.state(job) == "arrived"
        with pytest.raises(InvalidParameterError, match="proctrack/cgroup"):
            trial.bridge.check_cluster()


class DeadError(Exception):
    """The bridge was killed."""


def killed_after(bridge, actions):
    """Let a bridge take so many actions, and die before the next."""
    take, left = bridge._actions.take, [actions]

    def taken(action, view):
        if not left[0]:
            raise DeadError
        left[0] -= 1
        take(action, view)

    bridge._actions.take = taken


def test_killed_between_any_two_actions_one_way_runs_on_the_nodes_booked(tmp_path):
    runs = tmp_path / "runs"
    with trial_on(tmp_path) as trial:
        for moment in range(4):  # a release and two cancellations follow a start
            script = f"echo {moment} $SLURM_JOB_ID $SLURM_JOB_NODELIST >> {runs}; exec sleep 60"
            job, numbers = submit(trial, f"k{moment}", WIDE, HALF, OLD, script=script)
            trial.bridge.step()
            assert trial.state(job) == "arrived"
            trial.operator.advance()
            dying = SlurmBridge(trial.operator, trial.slurm, trial.rules)
            killed_after(dying, moment)
            if moment < 3:
                with pytest.raises(DeadError):
                    dying.step()
            else:
                dying.step()
            trial.bridge = SlurmBridge(trial.operator, trial.slurm, trial.rules, trial.said.append)
            trial.step_until(
                lambda n=numbers: sorted(map(trial.slurm_state, n)) == ["CANCELLED", "CANCELLED", "RUNNING"]
            )
            booking = trial.operator.job(job)["booking"]
            (running,) = [number for number in numbers if trial.slurm_state(number) == "RUNNING"]
            assert running == numbers[booking["shape"]]
            until(lambda m=moment: runs.exists() and runs.read_text().count("\n") > m)
            trial.slurm.cancel(running)
            trial.step_until(lambda j=job: trial.state(j) == "completed")
            place = {"a100-0": "n1", "a100-1": "n2", "v100-0": "n3"}[next(iter(booking["nodes"]))]
            assert runs.read_text().splitlines()[-1] == f"{moment} {running} {place}"
        assert len(runs.read_text().splitlines()) == 4
        charged = [entry["job"] for entry in trial.operator.ledger(trial.me)["entries"] if entry["job"]]
        assert len(charged) == len(set(charged)) == 4
