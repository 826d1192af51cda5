"""Commands on several processes and on a cluster whose workers die: equal bytes."""

import os
import signal
from importlib.util import find_spec

import pytest

from sweep_tools import ONE_JOB, children, dask_cluster, finish, start, wait_until, write_spec

pytestmark = pytest.mark.slow
needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="needs the extra cluster (distributed)")
COMMANDS = {
    "compare": ("compare", "market.yaml", "-m", "exponential,first-come", "--runs", 60),
    "audit": ("audit", "market.yaml", "-m", "exponential", "--plays", 200, "--owners", 5, "--budget", 9999),
    "learn": ("learn", "--days", 12, "--seeds", 4, "--owners", 3, "--nodes", 2),
}


def tables(folder):
    """Return every table and summary; not the manifest, which holds seconds."""
    found = {path.relative_to(folder): path for kind in ("parquet", "csv") for path in folder.rglob(f"*.{kind}")}
    return {name: path.read_bytes() for name, path in found.items()}


@pytest.mark.long
@needs_dask
@pytest.mark.parametrize("command", ["compare", "audit", "learn"])
def test_processes_and_a_cluster_give_the_same_bytes(tmp_path, monkeypatch, command):
    write_spec(tmp_path / "market.yaml", **ONE_JOB)
    monkeypatch.chdir(tmp_path)
    finish(start(*COMMANDS[command], "--jobs", 1, "--out", "one"))  # the option's earlier name
    finish(start(*COMMANDS[command], "--workers", 2, "--out", "two"))
    with dask_cluster(tmp_path, 2) as (where, (_, first, _)):
        process = start(*COMMANDS[command], "--scheduler", where, "--out", "cluster")
        assert wait_until(lambda: any((tmp_path / ".marketsched-kept").glob("*/*.task")), 120)
        for child in children(first.pid):
            os.kill(child, signal.SIGKILL)
        finish(process)
    expected = tables(tmp_path / "one")
    assert expected and tables(tmp_path / "two") == expected and tables(tmp_path / "cluster") == expected
    assert not (tmp_path / ".marketsched-kept").exists()
