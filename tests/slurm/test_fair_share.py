"""Fair share on the port and as lines of slurm.conf: least wall times, weights, and a clock that was too fast."""

from types import SimpleNamespace

import pandas as pd
import pytest

from marketsched.slurm import fair_share
from marketsched.slurm.commands import SlurmError
from marketsched.slurm.fair_share import FairShareCluster, OnSlurm, Situation
from marketsched.slurm.gate import Asked, SlurmRun, TooSlow
from marketsched.slurm.port import simple_job


def test_a_least_wall_time_is_the_wall_time_on_the_port():
    """B asks for three rounds, or for less at least: with two it may pass in front of C, which starts in round 4."""
    jobs = (simple_job("a", "ann", 2, 2, 2), simple_job("c", "bob", 2, 3, 1), simple_job("b", "ann", 2, 1, 2, 3))
    cluster = FairShareCluster(3, {"ann": 1, "bob": 1}, weight_fair_share=0.0, weight_size=0.0)
    for least, start in ((0, 5), (1, 2), (2, 2), (3, 5)):  # it runs for two rounds, whatever it asks for
        found = cluster.starts_on_port(Situation(jobs, {"b": Asked(least=least)}))
        assert found == {"a": 2, "c": 4, "b": start}


def test_a_configuration_is_lines_of_slurm_conf():
    given = {"half_life_hours": 0.001, "max_age_hours": 1.5, "weight_qos": 7.0, "weight_size": 3.0, "weight_age": 2.0}
    found = FairShareCluster(4, {"ann": 1}, weight_fair_share=5.0, rule="classic", **given).lines()
    weights = {name: found[f"PriorityWeight{name}"] for name in ("Age", "Fairshare", "JobSize", "QOS")}
    assert weights == {"Age": "2", "Fairshare": "5", "JobSize": "3", "QOS": "7"}
    assert (found["PriorityDecayHalfLife"], found["PriorityMaxAge"]) == ("1", "90")  # whole minutes, at least one
    assert found["PriorityFlags"] == "NO_FAIR_TREE"
    assert "PriorityFlags" not in FairShareCluster(4, {"ann": 1}).lines()


def test_where_seconds_may_have_decided_the_clock_is_half_as_fast(monkeypatch):
    rates, enough = [], [60.0]

    def once(self, situation, rate, until):
        rates.append(rate)
        return None if rate > enough[0] else OnSlurm({"a": 1}, "22.05.8", rate)

    monkeypatch.setattr(FairShareCluster, "_on_slurm_once", once)
    cluster, situation = FairShareCluster(1, {"ann": 1}), Situation((simple_job("a", "ann", 1, 1, 1),))
    assert cluster.play_on_slurm(situation, rate=240.0).rate == 60.0 and rates == [240.0, 120.0, 60.0]
    rates.clear()
    enough[0] = 1.0
    with pytest.raises(SlurmError, match="a machine for a clock 30 times fast"):
        cluster.play_on_slurm(situation, rate=120.0)
    assert rates == [120.0, 60.0, 30.0]


@pytest.mark.parametrize(("late", "too_slow"), [(0, False), (1, False), (0, True)])
def test_starts_on_slurmctld_count_from_the_first_arrival_and_late_rounds_count_for_nothing(
    monkeypatch, late, too_slow
):
    made = []

    class Cluster:
        slurm = SimpleNamespace(configuration=lambda: {"SLURM_VERSION": "22.05.8"})

        def __init__(self, folder, nodes, **options):
            made.append((nodes, options))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def play(jobs, cluster, *, accounts, asked, until):
        assert accounts and asked == {"b": Asked(qos="high")} and until == ("b",)
        if too_slow:
            raise TooSlow("behind")
        return SlurmRun(pd.DataFrame({"job": ["a", "b"], "start": [2, 7]}), 9, 0, late)

    monkeypatch.setattr(fair_share, "AccountingCluster", Cluster)
    monkeypatch.setattr(fair_share, "play_in_slurm", play)
    cluster = FairShareCluster(3, {"ann": 2, "bob": 1}, qos={"high": (1.0, 2.0)})
    jobs = (simple_job("a", "ann", 4, 1, 1), simple_job("b", "bob", 5, 1, 1))
    found = cluster._on_slurm_once(Situation(jobs, {"b": Asked(qos="high")}), 60.0, ("b",))
    assert found == (None if late or too_slow else OnSlurm({"a": 4, "b": 9}, "22.05.8", 60.0))
    ((nodes, options),) = made
    assert nodes == 3 and options["accounts"] == {"ann/": 2, "bob/": 1} and options["rate"] == 60.0
    assert options["qos"] == {"high": (1.0, 2.0)} and options["settings"] == cluster.lines()
