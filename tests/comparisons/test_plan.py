"""How long a comparison may take, and how many processes that of a log gets by default."""

import pytest
from typer.testing import CliRunner

from marketsched.comparisons.plan import OF_CLUSTER, OF_LOG, _Costs, plan_of
from marketsched.config.scenario import Scenario
from marketsched.show.cli import app
from two_kinds import SCENARIO

PLANS = "marketsched.comparisons.plan"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A log whose jobs take one second of one play each, and nothing else."""
    (tmp_path / "log.csv").write_text("submit_s,run_s,processors\n" + "".join(f"{60 * i},60,1\n" for i in range(20)))
    monkeypatch.setattr(f"{PLANS}.BEGIN_S", 0.0)
    return Scenario.load(tmp_path / "log.csv")


def test_processes_of_large_logs_need_more_memory(small, monkeypatch):
    """Each of 1 GB and as much again for its jobs: two of them in half of 9 GB."""
    for name, value in (("OF_LOG", _Costs(9.0, 0, 0)), ("PROCESS_BYTES", 1e9), ("JOB_BYTES", 1e9 / 20)):
        monkeypatch.setattr(f"{PLANS}.{name}", value)
    monkeypatch.setattr(f"{PLANS}.cores", lambda: 64)
    monkeypatch.setattr(f"{PLANS}.available_memory", lambda: 9e9)
    assert plan_of(small, ["first-come"], 20).workers == 2


@pytest.mark.parametrize(
    ("seconds", "cores", "gigabytes", "asked", "workers"),
    [
        (0.1, 8, 64, None, 1),  # over in a moment
        (60, 8, 64, None, 6),  # three seeds at two loads
        (60, 4, 64, None, 4),
        (60, 8, 1.3, None, 2),  # half of the memory for processes of .3 GB
        (60, 8, 0.1, None, 1),
        (60, 8, 64, 3, 3),
        (60, 8, 0.1, 9, 9),  # who asks for more than there are seeds and loads
    ],
)
def test_a_long_comparison_is_shared_as_far_as_seeds_processors_and_memory_go(
    small, monkeypatch, seconds, cores, gigabytes, asked, workers
):
    monkeypatch.setattr(f"{PLANS}.cores", lambda: cores)
    monkeypatch.setattr(f"{PLANS}.available_memory", lambda: gigabytes * 1e9)
    monkeypatch.setattr(f"{PLANS}.OF_LOG", _Costs(seconds / (20 * 12), 0.0, 0.0))
    found = plan_of(small, ["first-come", "credits"], 3, 2, workers=asked)
    assert (found.jobs, found.mechanisms, found.plays, found.workers) == (20, 2, 12, workers)
    assert found.seconds == pytest.approx(seconds / min(workers, 6)) and found.is_long == (seconds > 20)


def test_the_estimate_has_the_bound_and_the_best_flat_price_and_speaks_of_markets_and_clusters(small):
    """On HPC2N bound and flat price took 2.9 s of 6.8 for each seed, in stochastic-mix the exact optimum 10 of 10.2."""
    log = plan_of(small, ["first-come"], 3)
    assert log.seconds == pytest.approx(3 * 20 * sum(OF_LOG)) and OF_LOG.flat + OF_LOG.bound > 5 * OF_LOG.play
    assert 9 <= plan_of(Scenario.load("stochastic-mix"), None, 1).seconds <= 12
    assert plan_of(Scenario.load("stochastic-mix"), None, 1, optimum_seconds=0.0).seconds < 1
    cluster = plan_of(Scenario.from_dict(SCENARIO), None, 4, workers=2)
    assert cluster.workers == 2 and cluster.seconds == pytest.approx(
        2 * cluster.jobs * (6 * OF_CLUSTER.play + OF_CLUSTER.flat + OF_CLUSTER.bound)
    )


@pytest.mark.parametrize("arguments", [["compare", "stochastic-mix", "-m", "first-come:prise=3"], ["run", "a.yaml"]])
def test_an_error_of_arguments_is_one_line(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("name: x\nworkload: {kind: swf, path: nope.swf}\n")
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 2 and len(found.stderr.splitlines()) == 1
