"""What is read from Slurm, and what is made of it, by hand: jobs, nodes, a situation, decisions, summary and script."""

from dataclasses import asdict
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from marketsched.results.result import Result
from marketsched.slurm import beside, clock
from marketsched.slurm.beside import Beside, beside_slurm, starts_of
from marketsched.slurm.clock import FastClock
from marketsched.slurm.commands import Slurm, SlurmJob
from marketsched.slurm.demand import NodeDemand, SlurmNode
from marketsched.slurm.fair_share import FairShareCluster, Situation
from marketsched.slurm.gate import Asked, SlurmRun, wall_time
from marketsched.slurm.lies import LIES, submitted_as
from marketsched.slurm.lies_kind import SlurmLiesKind
from marketsched.slurm.port import simple_job
from marketsched.slurm.shown import _plays, script
from marketsched.slurm.situations import Looked, PlayedLog
from marketsched.slurm.slurm_audit import COLUMNS, DEFAULTS, _Screened, _summary, _to_play

ROW = {
    "job_id": 12, "name": "train", "user_name": "ann", "comment": "market:x", "job_state": "FAILED", "nice": 50,
    "state_reason": "NonZeroExitCode", "priority": 0, "node_count": 2, "submit_time": 5, "start_time": 7,
    "end_time": 9, "exit_code": 3 << 8, "restart_cnt": 1, "time_limit": 10, "partition": "market,debug", "qos": "high",
    "array_job_id": 11, "dependency": "afterok:3", "eligible_time": 6, "tres_req_str": "cpu=8,mem=3G,node=2",
    "tres_per_node": "gres:gpu:a100:4", "tres_per_job": "gres:gpu:8", "shared": "none",
}  # fmt: skip


def test_each_field_of_a_job_is_read_from_its_own_word():
    found = asdict(SlurmJob.of(ROW))
    assert found == {
        "id": 12, "name": "train", "user": "ann", "comment": "market:x", "state": "FAILED", "nice": 50,
        "reason": "NonZeroExitCode", "held": False, "nodes": 2, "submitted": 5.0, "started": 7.0, "ended": 9.0,
        "exit_code": 3, "restarts": 1, "limit": 10, "partitions": ("market", "debug"), "leader": 11,
        "parts": "an array", "begins_later": False, "depends": False, "qos": "high",
        "demand": {"cpus": 4.0, "memory": 1536.0, "gpus": {"a100": 4}, "unclear": "--gpus, --exclusive"},
    }  # fmt: skip
    waiting = SlurmJob.of(ROW | {"job_state": "PENDING", "het_job_id": 10})
    assert (waiting.held, waiting.begins_later, waiting.depends, waiting.started) == (True, True, True, 0.0)
    assert (waiting.leader, waiting.parts) == (10, "a heterogeneous job")
    cancelled = [SlurmJob.of(ROW | {"job_state": "CANCELLED", "start_time": start}).started for start in (7, 9)]
    assert cancelled == [7.0, 0.0]  # as it ran, as it waited
    none = dict.fromkeys(set(ROW) - {"job_id", "name", "user_name", "job_state", "state_reason", "priority"})
    bare = asdict(SlurmJob.of(ROW | none))
    assert bare["demand"] == asdict(NodeDemand()) and (bare["leader"], bare["parts"], bare["qos"]) == (12, "", "")
    assert not any(bare[name] for name in ("nodes", "submitted", "started", "ended", "exit_code", "restarts", "limit"))


def test_nodes_are_those_of_the_partition_with_what_jobs_can_have():
    class Answers(Slurm):
        def run(self, *command, text=None):
            return {
                "sinfo": "n1 IDLE\nn2 mixed\nn3 down*\nn4 draining\nn5 draining*\nn6 Drained\n",
                "scontrol": "NodeName=n1 CPUEfctv=7 CPUTot=8 RealMemory=900 MemSpecLimit=100 Gres=gpu:a100:2(S:0) "
                "ActiveFeatures=fast,new Partitions=market,debug\n"
                "NodeName=n2 CPUTot=8 RealMemory=900 Gres=(null) ActiveFeatures=(null) Partitions=market\n"
                "NodeName=n3 CPUTot=4 RealMemory=50 Gres= Partitions=market\nNodeName=other CPUTot=1 RealMemory=1\n",
            }[command[0]]

    slurm = Answers()
    assert slurm.nodes("market") == [
        SlurmNode("n1", 7, 800, {"a100": 2}, ("fast", "new"), ("market", "debug"), True),
        SlurmNode("n2", 8, 900, {}, (), ("market",), True),
        SlurmNode("n3", 4, 50, {}, (), ("market",), False),
    ]
    assert slurm.usable_nodes("market") == 3  # n1, n2, and n4 behind its last job


def of(job):
    return job.name, job.owner, job.arrival, job.truth.concurrency, job.duration, wall_time(job)


def test_a_situation_holds_usage_then_what_runs_then_what_waits_and_comes():
    """Three nodes and a queue by age. X of Eve comes in round 6 and waits for C; what began before round 3 is usage."""
    jobs = [
        simple_job("z", "zoe", 1, 1, 1), simple_job("a", "ann", 1, 2, 3, 4), simple_job("b", "bob", 2, 1, 2),
        simple_job("c", "cyd", 3, 2, 9, 10), simple_job("d", "dan", 4, 1, 1, 3), simple_job("x", "eve", 6, 3, 2, 3),
        simple_job("f", "fay", 7, 1, 2), simple_job("k", "ann", 8, 1, 30), simple_job("g", "gus", 19, 1, 1),
        simple_job("h", "hal", 20, 1, 1), simple_job("m", "mia", 21, 3, 2), simple_job("n", "ned", 22, 3, 2),
        simple_job("o", "oda", 30, 3, 2, 1),
    ]  # fmt: skip
    sizes = {"max_delay": 300, "max_concurrency": 3, "max_duration": 40, "max_value": 1.0}
    workload = SimpleNamespace(capacity=3, round_seconds=3600.0, jobs=jobs, horizon=40, **sizes)
    rules = DEFAULTS | {"weight_fair_share": 0.0, "weight_size": 0.0, "half_life_hours": 2.0, "max_age_hours": 30.0}
    log = PlayedLog(workload, rules)
    assert {name: log.runs[name] for name in "zabcdfx"} == {
        "z": (1, 2), "a": (1, 4), "b": (2, 4), "c": (4, 13), "d": (4, 5), "f": (7, 9), "x": (13, 15)
    }  # fmt: skip
    # C comes too early, n waits 25 rounds, m 24, and o is killed at its wall time.
    assert (log.runs["m"][0], log.runs["n"][0]) == (45, 47)
    assert [job.name for job in log.waiting()] == ["x", "k", "m"]
    found = log.situation(jobs[5])
    assert (found.job, found.owner, found.wait) == ("x", "eve", 7)
    assert [of(job) for job in found.truth.jobs] == [
        *((f"used-{name}", name, 1, 1, 1, 1) for name in ("user1", "user2", "rest")),
        ("job0", "user1", 2, 2, 2, 3), ("job1", "user2", 2, 1, 2, 2),  # A and B run until round 4
        ("job2", "user3", 3, 2, 9, 10), ("job3", "user4", 4, 1, 1, 3), ("looked", "user5", 6, 3, 2, 3),
        ("job5", "user6", 7, 1, 2, 2), ("job6", "user1", 8, 1, 30, 30), ("job7", "user7", 19, 1, 1, 1),
    ]  # fmt: skip
    assert found.truth.asked == {f"used-{name}": Asked(qos=f"past-{name}") for name in ("user1", "user2", "rest")}
    assert found.cluster.shares == dict.fromkeys([*(f"user{i}" for i in range(1, 8)), "rest", "fresh"], 1)
    kept = 0.5**0.5  # an hour of a half-life of two; Slurm's own rounding of it is small
    usage = {"user1": 2 * (kept + kept**2), "user2": kept, "rest": kept**2}
    assert found.cluster.qos.pop("high") == (1.0, 1.0)
    assert found.cluster.qos == {f"past-{name}": (0.0, pytest.approx(each, rel=1e-3)) for name, each in usage.items()}
    assert (found.cluster.nodes, found.cluster.rule) == (3, "fair-tree")
    assert (found.cluster.half_life_hours, found.cluster.max_age_hours) == pytest.approx((1 / 3, 5.0))  # a sixth


FRAME = pd.DataFrame(  # two nodes; B could start in round 3, in which A has left before its wall time, and does in 4
    [("A", 2, 1, 2, 3, 1), ("B", 2, 1, 1, 1, 4), ("C", 1, 3, 1, 1, 3), ("D", 1, 7, 2, 4, 7), ("E", 2, 8, 1, 1, 9),
     ("F", 1, 8, 1, 3, 8)],
    columns=["job", "nodes", "arrival", "duration", "wall_time", "start"],
)  # fmt: skip


def test_decisions_are_compared_round_by_round_with_what_ran_and_waited():
    """Nobody waits in rounds 5 and 6. In round 8 F passes E, as D asks for time until round 11, and so does F."""
    frame = FRAME.assign(**{"easy-backfill": [1, 3, 4, 7, 9, 8], "conservative-backfill": [1, 3, 4, 7, 11, 9]})
    found = Beside(SlurmRun(frame, 9, 0, 0), 2)
    assert found.decisions() == (7, 6)
    assert (found.equal("easy-backfill"), found.equal("conservative-backfill")) == (4, 2)
    assert found.waits().to_dict() == {"slurm": 4 / 6, "easy-backfill": 4 / 6, "conservative-backfill": 7 / 6}


def log_of(frame):
    columns = frame[["job", "arrival", "nodes", "duration", "wall_time"]].itertuples(index=False, name=None)
    jobs = tuple(simple_job(name, name, *rest) for name, *rest in columns)
    sizes = {"max_delay": 300, "max_concurrency": 2, "max_duration": 9, "max_value": 1.0}
    return SimpleNamespace(capacity=2, jobs=jobs, horizon=20, **sizes)


def test_the_schedulers_beside_drop_no_job_and_kill_at_the_wall_time():
    workload = log_of(FRAME.assign(duration=[2, 3, 1, 2, 1, 1]))  # B would take three rounds, and gets one
    assert starts_of("easy-backfill", workload) == {"A": 1, "B": 3, "C": 4, "D": 7, "E": 9, "F": 8}


@pytest.mark.parametrize(("counting", "nodes"), [("nodes", 2), ("licenses", 4)])
def test_a_log_is_played_on_as_many_nodes_or_licenses_as_the_market_has(counting, nodes, monkeypatch):
    made, asked = [], {}

    class Cluster:
        def __init__(self, folder, nodes, *, rate, settings):
            made.append((nodes, rate, settings))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def play(jobs, cluster, **options):
        asked.update(options)
        return SlurmRun(FRAME.copy(), 9, 0, 0)

    monkeypatch.setattr(beside, "OneHostCluster", Cluster)
    monkeypatch.setattr(beside, "play_in_slurm", play)
    found = beside_slurm(log_of(FRAME), counting=counting, reserving="all", rate=60.0, folder=Path("/nowhere"))
    assert found.nodes == 2 and asked == {"counting": counting}
    assert found.run.frame["easy-backfill"].tolist() == [1, 3, 4, 7, 9, 8]
    ((n, rate, settings),) = made
    assert (n, rate) == (nodes, 60.0) and settings.get("Licenses") == ("node:2" if counting == "licenses" else None)
    parameters = settings["SchedulerParameters"].split(",")
    assert "bf_job_part_count_reserve=0" in parameters and ("bf_licenses" in parameters) == (counting == "licenses")


def tables(screened, plays):
    """Return the tables of an audit from rows of (lie, gain), and of (lie, truth, lying, gain on the port)."""
    seen = pd.DataFrame([(lie, "7", "ann", 3, 9, gain) for lie, gain in screened], columns=COLUMNS)
    rows = [(lie, "7", k, truth, lying, truth - lying, port) for k, (lie, truth, lying, port) in enumerate(plays)]
    return seen, pd.DataFrame(rows, columns=["lie", "job", "repetition", "truth", "lying", "gain", "port"])


def test_the_summary_has_a_row_for_each_lie_with_its_gains_and_what_slurmctld_did():
    gains = [("account", gain) for gain in (0, 2, -1, 3)] + [("split", 1), ("begin", 0), ("begin", 0)]
    plays = [("account", 9, 6, 3), ("account", 9, 8, 3), ("split", 5, 4, 1), ("split", 5, 5, 1)]
    rows = _summary(*tables(gains, plays)).set_index("lie")
    assert rows.index.tolist() == list(LIES)
    account, split, begin, none = (rows.loc[lie] for lie in ("account", "split", "begin", "qos"))
    assert (account["looked_at"], account["gain"], account["paying"]) == (4, 1.0, 0.5)
    half = 3.182446 * np.std([0, 2, -1, 3], ddof=1) / 2  # Student's, three degrees of freedom
    assert (account["gain_low"], account["gain_high"]) == pytest.approx((1 - half, 1 + half))
    assert (account["job"], account["on_port"], account["least_on_slurm"], account["most_on_slurm"]) == ("7", 3, 1, 3)
    assert account["confirmed"] and not split["confirmed"] and split["least_on_slurm"] == 0 < split["most_on_slurm"]
    assert (begin["paying"], begin["job"], begin["confirmed"]) == (0.0, "", False) and np.isnan(begin["on_port"])
    assert (none["looked_at"], none["confirmed"]) == (0, False) and np.isnan(none["paying"])
    meta = {"scenario": "log", "slurm": ["22.05.8"], "rules": {"rule": "classic"}, "missing": [], "owners": 4,
            "waiting": 8, "nodes": 3, "round_seconds": 60.0, "confidence": 0.95, "repetitions": 2}  # fmt: skip
    page = Console(width=150, record=True, file=StringIO())
    page.print(SlurmLiesKind.view(SlurmLiesKind(), Result("slurm-lies", {}, rows.reset_index(), meta, {})))
    lines = [" ".join(line.split()) for line in page.export_text().splitlines()]
    assert lines[0] == "log, Slurm 22.05.8 (classic): 1 lies pay, confirmed on slurmctld: account"
    assert "comes from a fresh account 4 +1.0 (-1.9 to +3.9) 50.0 % 7 +3 +1 to +3 yes" in lines
    assert "is two jobs of half of its nodes 1 +1.0 100.0 % 7 +1 +0 to +1 no" in lines
    assert "asks for the QOS high 0 - - - - - -" in lines


def test_what_pays_most_often_in_one_situation_is_played_there_and_each_lie_once():
    def found(job, lie, gain, jobs=3):
        return _Screened(SimpleNamespace(job=job), lie, SimpleNamespace(jobs=[None] * jobs), gain)

    rows = [
        found("1", "account", 5), found("1", "split", 0),
        found("2", "account", 1), found("2", "split", 1), found("2", "qos", 9, jobs=151),  # too long for slurmctld
        found("3", "account", 2), found("3", "split", 2, jobs=4),
        found("4", "split", 2, jobs=150), found("4", "account", 2),  # the same gains, and more jobs
        found("5", "begin", 1),
    ]  # fmt: skip
    chosen = [[(each.looked.job, each.lie) for each in own] for own in _to_play(rows)]
    assert chosen == [[("3", "account"), ("3", "split")], [("5", "begin")]]


def test_a_script_submits_each_job_in_its_round_with_all_that_it_asks_for():
    jobs = (
        simple_job("a", "ann", 1, 2, 3, 4),
        simple_job("looked", "bob", 5, 1, 2, 3),
        simple_job("b", "ann", 2, 1, 1),
    )
    text = _plays("lie", Situation(jobs, {"looked": Asked(qos="high", least=2, ahead=3)}))
    assert text.splitlines() == [
        "start  # the lie",
        "until_round 1",
        "ask a 30 --account=ann --nodes=2 --time=39 --time-min=34",
        "until_round 2",
        'ask looked 20 --account=bob --nodes=1 --time=29 --time-min=14 --qos=high '
        '--begin="$(date -d "@$(( BEGIN + 4 * 600 ))" +%Y-%m-%dT%H:%M:%S)"',
        "ask b 10 --account=ann --nodes=1 --time=9 --time-min=4",
        "finish lie looked",
    ]  # fmt: skip


def test_a_script_says_what_it_takes_and_makes_accounts_and_qualities():
    cluster = FairShareCluster(2, {"ann": 3, "fresh": 1}, qos={"past": (0.0, 9.5)}, weight_age=7.0)
    truth = Situation((simple_job("looked", "ann", 2, 1, 2), simple_job("b", "ann", 5, 1, 1)))
    rows = [{"gain": gain} for gain in (3, 2, 3)]
    text = script(Looked("7", "ann", 3, cluster, truth), "account", submitted_as(truth, "account", 2), "22.05.8", rows)
    assert "# A job comes from a fresh account: what that gains" in text and "\n#   PriorityWeightAge=7\n" in text
    assert "Slurm 22.05.8: the job was done 2 or 3 rounds of ten minutes earlier." in text
    assert "with 2 nodes of one processor" in text
    assert "last about 1.8 hours" in text  # the last comes in round 5; and six rounds more
    manage = [line.strip() for line in text.splitlines() if line.strip().startswith("manage ")]
    allowed = "fairshare=1 qos=normal,past defaultqos=normal"
    assert manage == [
        "manage add account ann fairshare=3", "manage add account fresh fairshare=1",
        "manage add qos past priority=0 usagefactor=9.500000",
        f'manage add user "$ME" account=ann {allowed}', f'manage add user "$ME" account=fresh {allowed}',
        "manage modify account ann set rawusage=0", "manage modify account fresh set rawusage=0",
    ]  # fmt: skip
    asked = [line for line in text.splitlines() if line.startswith("ask looked")]
    assert ["--account=ann" in line for line in asked] == [True, False] and "--account=fresh" in asked[1]


def test_a_fast_clock_shows_more_seconds_than_pass_and_sleeps_less(monkeypatch):
    now, slept = [50.0], []
    shown = SimpleNamespace(monotonic=lambda: now[0], time=lambda: 1000.0, sleep=slept.append)
    monkeypatch.setattr(clock, "time", shown)
    fast = FastClock(4.0)
    now[0] = 52.0
    assert fast.now() == 1008.0
    assert fast.wait_until(1020.0) == 12.0 and slept == [3.0]
    assert fast.wait_until(1008.0) == 0.0 and fast.wait_until(1000.0) == -8.0 and slept == [3.0]
