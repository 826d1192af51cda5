"""An audit of Slurm: lies as they are submitted, situations of a log, the screen on the port, one lie on slurmctld."""

import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

from marketsched.config.scenario import Scenario
from marketsched.show.cli import app
from marketsched.slurm.accounts import missing_accounting
from marketsched.slurm.fair_share import FairShareCluster, OnSlurm, Situation
from marketsched.slurm.gate import Asked, wall_time
from marketsched.slurm.lies import FRESH, LIES, LOOKED, done, parts_of, submitted_as
from marketsched.slurm.port import simple_job
from marketsched.slurm.shown import script
from marketsched.slurm.situations import LONGEST_WAIT, PlayedLog
from marketsched.slurm.slurm_audit import DEFAULTS, audit_slurm
from refusals import refused
from slurm_trials import WITH_FAST_SLURM

NODES, ROUND_S = 4, 3600
SCENARIO = {"name": "small", "workload": {"kind": "swf", "path": "", "capacity": NODES}}


def line(job, submit, run_s, width, requested, user):
    return f"{job} {submit} -1 {run_s} {width} -1 -1 -1 {requested} -1 1 {user} 1 -1 -1 -1 -1 -1\n"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Two days of three users who ask for more than they need, on four nodes; the first one uses most."""
    rng = np.random.default_rng(5)
    lines, submit = ["; MaxNodes: 4\n; MaxProcs: 4\n"], 0
    for number in range(1, 61):
        submit += int(rng.integers(600, 4200))
        rounds, user = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
        lines.append(line(number, submit, rounds * ROUND_S - 60, int(rng.integers(1, 4)), 2 * rounds * ROUND_S, user))
    path = tmp_path_factory.mktemp("log") / "small.swf"
    path.write_text("".join(lines))
    return path


def scenario(log):
    return SCENARIO | {"workload": SCENARIO["workload"] | {"path": str(log)}}


@pytest.fixture
def no_slurm(monkeypatch):
    monkeypatch.setattr("marketsched.slurm.slurm_audit.missing_programs", lambda **_: ["slurmctld"])
    monkeypatch.setattr("marketsched.slurm.slurm_audit.missing_accounting", lambda: ["slurmdbd"])


def before(nodes=3, rounds=2, limit=5):
    return Situation(
        (simple_job("other", "bob", 1, 2, 3), simple_job(LOOKED, "ann", 2, nodes, rounds, limit)),
        {"other": Asked(qos="past")},
    )


def of_ann(situation):
    return [(job.owner, job.truth.concurrency, job.duration, wall_time(job)) for job in situation.jobs[1:]]


def test_lies_change_the_job_that_is_looked_at_and_no_other():
    submitted = {
        "wall time": [("ann", 3, 2, 2)],
        "time-min": [("ann", 3, 2, 5)],
        "account": [(FRESH, 3, 2, 5)],
        "split": [("ann", 1, 2, 5), ("ann", 2, 2, 5)],
        "half width": None,
        "twice width": [("ann", 6, 2, 5)],
        "begin": [("ann", 3, 2, 5)],
        "qos": [("ann", 3, 2, 5)],
    }
    asked = {"time-min": Asked(least=2), "begin": Asked(ahead=3), "qos": Asked(qos="high")}
    assert set(submitted) == set(LIES)
    for lie, expected in submitted.items():
        found = submitted_as(before(), lie, 8)
        if expected is None:
            assert found is None
            continue
        assert of_ann(found) == expected and found.jobs[0] == before().jobs[0]
        assert found.asked == {"other": Asked(qos="past")} | ({LOOKED: asked[lie]} if lie in asked else {})
    assert of_ann(submitted_as(before(nodes=4), "half width", 8)) == [("ann", 2, 4, 10)]


def test_what_is_no_lie_is_left_out():
    assert submitted_as(before(limit=2), "wall time", 8) is None
    assert submitted_as(before(limit=2), "time-min", 8) is None
    assert submitted_as(before(nodes=1), "split", 8) is None
    assert submitted_as(before(), "twice width", 5) is None


def test_work_in_parts_is_done_with_the_last_one():
    found = submitted_as(before(), "split", 8)
    assert done(found, {"other": 1, "looked0": 4, "looked1": 9}) == 11
    assert parts_of(found) == ("looked0", "looked1")


def test_usage_and_qos_decide_on_the_port():
    """Of two that wait, the one whose account has used less goes first, until the other asks for a QOS that counts."""
    jobs = [simple_job(f"used-{name}", name, 1, 1, 1) for name in ("ann", "bob")]
    jobs += [simple_job("full", "eve", 2, 2, 2), simple_job("a", "ann", 3, 2, 1), simple_job("b", "bob", 3, 2, 1)]
    used = {"used-ann": Asked(qos="much"), "used-bob": Asked(qos="little")}
    quality = {"much": (0.0, 90.0), "little": (0.0, 9.0), "high": (1.0, 1.0)}
    shares = {"ann": 1, "bob": 1, "eve": 1}
    for rule in ("fair-tree", "classic"):
        for weight, first in ((0.0, "b"), (20_000.0, "a")):
            cluster = FairShareCluster(2, shares, rule=rule, weight_qos=weight, qos=quality)
            starts = cluster.starts_on_port(Situation(tuple(jobs), used | {"a": Asked(qos="high")}))
            assert (starts["used-ann"], starts["full"]) == (1, 2)
            assert min(("a", "b"), key=starts.__getitem__) == first


def test_situations_hold_what_the_log_has(log, no_slurm):
    """History is over in its rounds, what ran runs at once, and most jobs wait as in the log, though ages are new."""
    played = PlayedLog(Scenario.from_dict(scenario(log)).workload_of(0), DEFAULTS)
    waiting = played.waiting()
    assert len(waiting) > 10
    equal = 0
    for job in waiting:
        found = played.situation(job)
        starts = found.cluster.starts_on_port(found.truth, parts_of(found.truth))
        names = [each for each in found.truth.jobs if each.name.startswith("used-")]
        assert all(starts[each.name] == each.arrival == 1 for each in names)
        first = 2 if names else 1
        assert all(starts[each.name] == first for each in found.truth.jobs if each.arrival == first)
        (looked,) = [each for each in found.truth.jobs if each.name == LOOKED]
        assert 1 <= found.wait <= LONGEST_WAIT
        equal += starts[LOOKED] - looked.arrival == found.wait
    assert equal > 0.8 * len(waiting)


def test_without_slurm_the_screen_says_what_is_missing(log, no_slurm, tmp_path):
    done_ = CliRunner().invoke(
        app, ["audit", str(log), "-m", "slurm:rule=classic", "--owners", "8", "--out", str(tmp_path / "o")]
    )
    assert done_.exit_code == 0, done_.output
    assert "on the port pay" in done_.output and "account" in done_.output
    assert "not confirmed: slurmctld, slurmdbd not found; expected Debian's" in done_.output
    assert "rule classic" in done_.output


@pytest.fixture
def on_port(monkeypatch):
    """Put the port in the place of slurmctld; those in ``as_late`` end as late as another one."""
    plays, ends, as_late = [], [], {}
    monkeypatch.setattr("marketsched.slurm.slurm_audit.missing_programs", lambda **_: [])
    monkeypatch.setattr("marketsched.slurm.slurm_audit.missing_accounting", lambda: [])

    def play(self, situation, *, rate, until=()):
        starts = self.starts_on_port(situation, until)
        plays.append(rate)
        if len(plays) in as_late:
            starts = {job.name: ends[as_late[len(plays)] - 1] - job.duration for job in situation.jobs}
        ends.append(done(situation, starts))
        return OnSlurm(starts, "22.05.8", rate / 2)

    monkeypatch.setattr(FairShareCluster, "play_on_slurm", play)
    return plays, ends, as_late


def test_a_lie_is_confirmed_if_it_pays_in_every_play(log, on_port):
    """Two repetitions on a Slurm that plays as the port does; then the last play, of one lie, gains nothing."""
    (plays, ends, as_late), steps, n = on_port, [], 6
    found = audit_slurm(
        scenario(log), owners=n, repetitions=2, seed=3, progress=lambda what, share: steps.append(share)
    )
    screened, confirmed = found.tables["screened"], found.tables["confirmed"]
    paying = set(screened.loc[screened["gain"] > 0, "lie"])
    assert paying and set(confirmed["lie"]) == paying
    for lie, rows in confirmed.groupby("lie"):  # in one situation, the truth before it in each repetition
        assert rows["job"].nunique() == 1 and rows["repetition"].tolist() == [0, 1]
        assert (lie, rows["job"].iloc[0], rows["gain"].iloc[0]) in set(
            screened[["lie", "job", "gain"]].itertuples(index=False, name=None)
        )
    assert (confirmed["gain"] == confirmed["port"]).all() and (confirmed["gain"] > 0).all()
    assert (confirmed["truth"] - confirmed["lying"] == confirmed["gain"]).all()
    assert plays[:2] == [200.0, 100.0]  # a rate that was too high is not tried again
    assert len(plays) == 2 * (len(paying) + confirmed["job"].nunique())
    assert steps == [k / len(steps) for k in range(len(steps))] and len(steps) == confirmed["job"].nunique()
    rows = found.summary.set_index("lie")
    assert set(rows.index[rows["confirmed"]]) == paying == confirmed_by_scripts(found)
    for lie, gains in screened.groupby("lie")["gain"]:
        assert (rows["looked_at"][lie], rows["gain"][lie]) == (len(gains), gains.mean())
        assert rows["paying"][lie] == (gains > 0).mean()
    assert (found.meta["slurm"], found.meta["missing"], found.meta["owners"]) == (["22.05.8"], [], n)
    assert found.meta["complete"] and found.meta["waiting"] >= n
    together = (confirmed["job"] == confirmed["job"].iloc[-1]).sum() // 2  # lies after the last play of the truth
    as_late[len(plays)] = len(plays) - together
    plays.clear()
    ends.clear()
    again = audit_slurm(scenario(log), owners=n, repetitions=2, seed=3)
    assert again.tables["screened"].equals(screened)  # the same seed draws the same jobs
    lost, rows = again.tables["confirmed"]["lie"].iloc[-1], again.summary.set_index("lie")
    assert rows["least_on_slurm"][lost] == 0 < rows["most_on_slurm"][lost]
    assert set(rows.index[rows["confirmed"]]) == paying - {lost} == confirmed_by_scripts(again)
    plays.clear()
    assert audit_slurm(scenario(log), owners=2, repetitions=0).tables["confirmed"].empty and not plays


def confirmed_by_scripts(result):
    """Return the lies for which a result holds a script."""
    return {name.removesuffix(".sh").replace("-", " ") for name in result.texts if name.endswith(".sh")} - {""}


def test_scripts_are_shell_scripts(log, no_slurm):
    played = PlayedLog(Scenario.from_dict(scenario(log)).workload_of(0), DEFAULTS)
    found = played.situation(played.waiting()[0])
    for lie in LIES:
        lying = submitted_as(found.truth, lie, NODES)
        if lying is None:
            continue
        text = script(found, lie, lying, "22.05.8", [{"gain": 2}, {"gain": 3}])
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert "done 2 or 3 rounds of ten minutes earlier" in text and "Slurm 22.05.8" in text
        for job in (*found.truth.jobs, *lying.jobs):
            assert f"ask {job.name} " in text


def test_bad_input(log, tmp_path):
    wide = scenario(log) | {"workload": SCENARIO["workload"] | {"path": str(log), "capacity": 99}}
    refused(lambda: audit_slurm(scenario(log), "slurm:colour=red"), "colour", legal="one of rule, weight_age")
    refused(lambda: audit_slurm("synthetic-pipelines"), legal="a log of jobs")
    refused(lambda: audit_slurm(wide), "no job of this log waits", legal="a smaller workload.capacity")
    found = CliRunner().invoke(app, ["audit", str(log), "-m", "slurm,first-come", "--out", str(tmp_path / "o")])
    assert found.exit_code == 2 and "expected slurm alone" in " ".join(found.stderr.split())


@pytest.mark.long
@pytest.mark.slow
@WITH_FAST_SLURM
@pytest.mark.skipif(bool(missing_accounting()), reason="needs Debian's slurmdbd and mariadb-server")
def test_a_fresh_account_goes_first_on_a_real_slurm():
    """One node; Ann's account has used it, Bob's job is before hers. From a fresh account hers is first."""
    jobs = [simple_job("used-ann", "ann", 1, 1, 1), simple_job("full", "bob", 2, 1, 2)]
    jobs += [simple_job("next", "bob", 3, 1, 2), simple_job(LOOKED, "ann", 3, 1, 1)]
    truth = Situation(tuple(jobs), {"used-ann": Asked(qos="past")})
    cluster = FairShareCluster(1, {"ann": 1, "bob": 1, FRESH: 1}, qos={"past": (0.0, 90.0)})
    lying = submitted_as(truth, "account", 1)
    for situation, start in ((truth, 6), (lying, 4)):
        assert cluster.starts_on_port(situation)[LOOKED] == start
        assert cluster.play_on_slurm(situation, rate=200.0, until=parts_of(situation)).starts[LOOKED] == start
