"""Rules that take runs back in front of a real Slurm: these lose their nodes, and start again later."""

from datetime import datetime

import pytest

from marketsched.live.slurm import SlurmError
from slurm_trials import WITH_SLURM, Trial

pytestmark = [WITH_SLURM, pytest.mark.slow]
OFFERS = {"mechanism": "two-offers", "max_duration": 8}
URGENT = {"rounds": (2,), "hidden": True, "patience": 3}  # to wait would be too late: it takes the regular offer


def script(trial, job, first, later=0.3):
    """Return a script that writes when it begins and ends, also off its nodes: seconds of its first and later runs."""
    note = f"$(date +%s.%N) >> {trial.folder}/runs"
    return (
        f"echo {job} begin {note}\ntrap 'echo {job} end {note}; exit 143' TERM\n"
        f'[ -n "$SLURM_RESTART_COUNT" ] && s={later} || s={first}\nsleep $s & wait $!\necho {job} end {note}'
    )


def runs_of(trial, job):
    """Return what a job's scripts have written: ("begin" or "end", seconds)."""
    path = trial.folder / "runs"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(what, float(when)) for name, what, when in lines if name == job]


def times_of(trial, kind, job):
    """Return when the market decided something about a job, seconds."""
    return [
        datetime.fromisoformat(event["time"]).timestamp()
        for event in trial.operator.events(follow=False)
        for decision in event["decisions"]
        if (decision["event"], decision.get("job")) == (kind, job)
    ]


def test_a_run_that_is_taken_back_starts_again_and_pays_for_its_last_run(tmp_path):
    with Trial(tmp_path, config=OFFERS) as trial:
        wide = trial.announce("wide", 2, (4,), hidden=True)
        number = trial.batch(wide, script(trial, wide, 60), nodes=2, minutes=8)
        trial.bridge.step()
        trial.operator.advance()
        trial.step_until(lambda: runs_of(trial, wide))
        urgent = trial.announce("urgent", 1, **URGENT)
        other = trial.batch(urgent, script(trial, urgent, 1), minutes=8)
        trial.bridge.step()
        trial.operator.advance()
        assert (trial.state(wide), trial.state(urgent)) == ("arrived", "running")
        trial.step_until(lambda: trial.slurm_state(number) == "HELD" and trial.slurm_state(other) == "RUNNING")
        trial.step_until(lambda: trial.state(urgent) == "completed")
        assert trial.slurm_state(number) == "HELD"
        trial.operator.advance()
        trial.step_until(lambda: trial.state(wide) == "completed")
        (found,) = [each for each in trial.slurm.jobs() if each.id == number]
        assert found.restarts == 1 == len(times_of(trial, "requeue", wide))
        assert [what for what, _ in runs_of(trial, wide)] == ["begin", "end", "begin", "end"]
        assert trial.operator.job(wide)["start"] == 3 and trial.operator.job(wide)["outcome"] == "done"
        with pytest.raises(SlurmError, match="disabled"):  # no user sends back what has to pay
            trial.slurm.requeue_held(number)
