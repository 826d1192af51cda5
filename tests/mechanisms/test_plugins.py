"""Names that users and installed packages add: known everywhere, checked by their signatures, broken ones in a line."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from marketsched import Scenario, run
from marketsched.mechanisms import InvalidParameterError, register, registry
from marketsched.mechanisms.errors import UnknownNameError
from marketsched.worlds import workload_of_log
from marketsched.worlds.traces.catalogue import get_trace, known_traces
from refusals import refused

pytestmark = pytest.mark.compiled  # about names, in processes of their own: too long for plain kernels

PLUGIN = """
    from marketsched.mechanisms.auctions.first_come import FirstCome
    from marketsched.mechanisms.legal import Share
    from marketsched.worlds import synthetic_pipelines, SyntheticParameters

    class Dearer(FirstCome):
        def __init__(self, capacity, horizon, share: Share = 0.5, **limits):
            super().__init__(capacity, horizon, share, **limits)

    def dearer(*, capacity, horizon, max_concurrency, max_duration, max_value, max_delay, share: Share = 0.5):
        return Dearer(capacity, horizon, share, max_concurrency=max_concurrency, max_duration=max_duration,
                      max_value=max_value, max_delay=max_delay)

    def few(rng, jobs: int = 20):
        return synthetic_pipelines(rng=rng, parameters=SyntheticParameters(recurring_jobs=jobs, birth_rounds=30))
"""


@pytest.fixture
def tables(monkeypatch):
    """Let a test register what it likes."""
    monkeypatch.setattr(registry, "_TABLES", {kind: dict(table) for kind, table in registry._TABLES.items()})


@pytest.fixture
def package(tmp_path):
    """Install a package with plug-ins, one of them broken; return the folder to put on the path."""
    (tmp_path / "plugged.py").write_text(textwrap.dedent(PLUGIN))
    (tmp_path / "broken.py").write_text("raise RuntimeError('no licence')\n")
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[marketsched.plugins]\nmechanism.dearer = plugged:dearer\nworkload.few = plugged:few\n"
        "mechanism.broken = broken:Mechanism\npolicy.broken = broken:Policy\n"
    )
    return tmp_path


def command(package, *arguments):
    """Run a command of marketsched with the package installed."""
    code = f"import sys; sys.path.insert(0, {str(package)!r}); from marketsched.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=package, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.long
def test_an_installed_package_is_known_to_the_command_line(package):
    text = "name: x\nworkload: {kind: few, jobs: 15}\nmechanism: {name: dearer, parameters: {share: 0.25}}\n"
    (package / "own.yaml").write_text(text)
    done = command(package, "run", "own.yaml", "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobs"] > 0
    assert "jobs: 15" in (package / "out" / "scenario.yaml").read_text()
    wrong = command(package, "run", "own.yaml", "--out", "out2", "--set", "mechanism.parameters.share=2")
    assert wrong.returncode == 2
    assert "mechanism.parameters.share = 2: expected a finite number in [0, 1]" in wrong.stderr
    wrong = command(package, "run", "own.yaml", "--out", "out2", "--set", "workload.jbos=2")
    assert wrong.returncode == 2 and "workload.jbos: unknown key (did you mean 'jobs'?)" in wrong.stderr


@pytest.mark.slow
def test_a_broken_plugin_is_one_line_where_it_is_named_and_nothing_elsewhere(package):
    assert command(package, "scenarios").returncode == 0
    done = command(package, "run", "synthetic-pipelines", "--out", "out", "--set", "mechanism.name=broken")
    assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1
    assert (
        "the plug-in broken:Mechanism of the package plugged cannot be loaded (RuntimeError: no licence)" in done.stderr
    )
    done = command(package, "run", "cluster-default", "--out", "out", "--set", "cluster.policies=[nobody]")
    assert done.returncode == 2 and "expected one of ogasched, drf" in done.stderr and "broken" not in done.stderr


def test_a_policy_of_ones_own_gets_what_it_names(tables):
    @register("policy", "greedy")
    class Greedy:
        name, observes = "greedy", "arrivals"

        def __init__(self, cluster, rng, greed: float = 1.0, eager: bool = False):
            self.cluster, self.greed = cluster, greed

        def allocate(self, arrivals):
            return np.zeros((self.cluster.n_ports, *self.cluster.capacities.shape))

        def update(self, arrivals):
            pass

    scenario = Scenario.from_dict({"name": "x", "cluster": {"slots": 5, "policies": ["greedy:greed=2"]}})
    (choice,) = scenario.cluster.choices()
    assert choice.in_one_line() == "greed=2.0 eager=false" and not choice.knows_horizon
    assert scenario.cluster.world(0).policy(choice, 5).greed == 2.0
    for wrong, words in (
        ("greedy:gred=1", "unknown key"),
        ("greedy:greed=x", "a finite number"),
        ("greedy:eager=2", "true"),
    ):
        with pytest.raises(InvalidParameterError, match=words):
            scenario.cluster.choices([wrong])
    with pytest.raises(InvalidParameterError, match="policy 'greedy' is unknown: expected one of esdp"):
        Scenario.from_dict({"name": "x", "cluster": {"core": "esdp", "policies": ["greedy"]}})


def test_a_workload_that_makes_something_else_is_refused(tables):
    @register("workload", "odd")
    def odd(rng):
        return [1, 2, 3]

    with pytest.raises(InvalidParameterError, match=r"workload 'odd' made .*: expected a Workload"):
        run(Scenario.from_dict({"name": "x", "workload": {"kind": "odd"}}))


def test_a_trace_of_ones_own_is_read_by_name(tables, tmp_path):
    import pandas as pd

    @register("trace", "mine")
    def mine(path):
        """Runs of my machine."""
        return pd.read_csv(path)

    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    trace = get_trace("mine")
    assert trace.title == "Runs of my machine" and trace.read(tmp_path)["b"].tolist() == [2]
    assert "mine" in [each.name for each in known_traces()]
    refused(lambda: get_trace("yours"), "trace 'yours' is unknown: expected one of google-jobs", error=UnknownNameError)


@pytest.mark.parametrize(("kind", "name"), [("polices", "x"), ("policy", ""), ("policy", 3)])
def test_a_registration_without_kind_or_name_is_refused(kind, name):
    refused(lambda: register(kind, name), "expected", error=InvalidParameterError)


def test_a_log_becomes_a_market():
    import pandas as pd

    log = pd.DataFrame(
        [(3_600 * i + 60 * (i % 2), 900, 2, 1, 1) for i in range(48)],
        columns=["submit_s", "run_s", "processors", "user", "executable"],
    )
    market = workload_of_log(log, rng=0, days=1.0)
    assert len(market.jobs) == 25 and market.capacity >= 4 and market.max_concurrency == 2  # both ends of the day
    assert all(job.duration in (7, 8) and job.truth.birth == job.arrival for job in market.jobs)  # of two minutes
    assert workload_of_log(log.iloc[::-1], rng=0, days=1.0).jobs == market.jobs
    with pytest.raises(InvalidParameterError, match="no column processors: expected submit_s, run_s"):
        workload_of_log(log.drop(columns="processors"))
    with pytest.raises(InvalidParameterError, match="no run is usable"):
        workload_of_log(log.assign(run_s=0))
    with pytest.raises(InvalidParameterError, match="days = 0: expected a finite number > 0"):
        workload_of_log(log, days=0)
