"""SIGKILL of the bridge and of Slurm's controller in the middle of it: nothing runs unasked, nobody pays twice.

`MARKETSCHED_SLURM_KILLS` says how many moments (3).
"""

import os
import random
import time
from datetime import datetime

import pytest

from slurm_trials import WITH_SLURM, BridgeProcess, Trial, until

KILLS = int(os.environ.get("MARKETSCHED_SLURM_KILLS", "3"))
ROUND = 1.0  # seconds at least; a job that is let go begins within one
FINAL = ("completed", "dropped", "cancelled", "evicted", "missed", "withdrawn")


def play_one(trial, bridge, label, victim, moment):
    """Announce two jobs, submit them, kill somebody after ``moment`` seconds, and wait for the end of both."""
    runs = trial.folder / "runs"
    jobs = {trial.announce(f"{label}-{i}", rounds=(1, 2, 3), bridge=False): None for i in range(2)}
    end, killed, next_round = time.monotonic() + moment, False, 0.0

    def played():
        nonlocal killed, next_round
        if not killed and time.monotonic() >= end:
            if victim == "bridge":
                bridge.kill()
                bridge.start()
            else:
                trial.cluster.kill("slurmctld")
                trial.cluster.start_controller()
            killed = True
        known = {job.comment for job in trial.slurm.jobs()}
        listed = trial.announced.read_text()
        for job in jobs:  # users submit what Slurm does not know, once the plugin lets them
            if f"market:{job}" not in known and job in listed and trial.state(job) == "submitted":
                trial.batch(job, f"echo {job} $(date +%s.%N) >> {runs}; exec sleep 0.5", minutes=2)
        if all(trial.state(job) != "submitted" for job in jobs) and time.monotonic() >= next_round:
            trial.operator.advance()
            next_round = time.monotonic() + ROUND
        return killed and all(trial.state(job) in FINAL for job in jobs)

    until(played, 120.0)


@pytest.mark.slow
@WITH_SLURM
def test_killed_at_any_moment_nothing_runs_unasked_and_nobody_pays_twice(tmp_path):
    draw = random.Random(1)
    with Trial(tmp_path) as trial:
        bridge = BridgeProcess(trial)
        try:
            for i in range(KILLS):
                victim = ("bridge", "slurmctld")[i % 2]
                play_one(trial, bridge, f"k{i}", victim, draw.uniform(0.0, 4.0))
            until(lambda: not any(job.active for job in trial.slurm.jobs()))
        finally:
            bridge.kill()
        started = {}
        for event in trial.operator.events(follow=False):
            for decision in event["decisions"]:
                if decision["event"] == "start":
                    started[decision["job"]] = datetime.fromisoformat(event["time"]).timestamp()
        ran = [line.split() for line in (tmp_path / "runs").read_text().splitlines()]
        assert ran and all(float(when) >= started[job] for job, when in ran)
        charged = [entry["job"] for entry in trial.operator.ledger(trial.me)["entries"] if entry["job"]]
        assert len(charged) == len(set(charged))
        finished = trial.operator.jobs()
        assert len(finished) == 2 * KILLS and {job["state"] for job in finished} <= set(FINAL)
        for job in finished:  # who ran is charged, and who is charged was started
            assert (job["job"] in started) == (job["state"] in ("completed", "evicted"))
        lost = [job["job"] for job in finished if job["outcome"] == "failed"]
        print(f"{KILLS} kills: {len(finished)} jobs, {len(ran)} runs, {len(lost)} failed: {lost}")
