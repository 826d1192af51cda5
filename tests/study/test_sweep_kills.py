"""Sweeps that are killed, whole or in part, and go on: no run lost, none made twice, the same table."""

import json
import os
import random
import socket
import time
from importlib.util import find_spec

import pytest

from sweep_tools import (
    CLUSTER,
    ONE_JOB,
    SCRIPT,
    WHOLE,
    alive,
    children,
    finish,
    manifest,
    names,
    records,
    start,
    sweep,
    table_bytes,
    wait_for_runs,
    wait_until,
    write_spec,
)

pytestmark = pytest.mark.slow
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="looks for processes in /proc")
needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="needs the extra cluster (distributed)")
RUNS = 48


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the sweep that all of these make, and the folder of one that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    spec = write_spec(
        folder / "sweep.yaml",
        name="killed",
        scenarios=[ONE_JOB, {**CLUSTER, "cluster": {**CLUSTER["cluster"], "slots": 400}}],
        grid={"description": ["a", "b"]},
        seeds=RUNS // 4,
    )
    sweep(spec, folder / "out", "--workers", 2)
    assert len(records(folder / "out")) == RUNS
    return spec, folder / "out"


def same(out, whole) -> bool:
    return table_bytes(out) == table_bytes(whole) and manifest(out) == manifest(whole) and names(out) == WHOLE


@pytest.mark.long
@needs_proc
def test_a_sweep_killed_at_three_random_moments(tmp_path, whole):
    spec, expected = whole
    moments = sorted(random.SystemRandom().sample(range(1, RUNS - 1), 3))
    out, kept = tmp_path / "out", {}
    for moment in moments:
        process = start("sweep", spec, "--out", out, "--workers", 2)
        wait_for_runs(out, moment, process)
        workers = children(process.pid)
        process.kill()
        process.communicate()
        now = records(out)
        assert kept.items() <= now.items(), moments  # none is made twice
        assert len(now) >= moment and not (out / "results.parquet").exists()
        assert wait_until(lambda workers=workers: not any(map(alive, workers))), "workers outlive the sweep"
        kept = now
    sweep(spec, out, "--workers", 2)
    assert kept.items() <= records(out).items() and len(records(out)) == RUNS
    assert same(out, expected), moments


@pytest.mark.long
@needs_proc
def test_runs_that_fail_or_kill_their_process_are_rows_and_made_again_when_asked(tmp_path):
    """A script's own mechanism, known to the workers because they import the script."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    sorts = [{"mechanism.name": "odd", "mechanism.parameters": {"sort": sort}} for sort in ("deadly", "once", "faulty")]
    spec = write_spec(tmp_path / "sweep.yaml", scenario=ONE_JOB, overrides=[{}, *sorts], seeds=1)
    said = sweep(spec, tmp_path / "out", "--workers", 2, script=script, status=1)
    assert "4 of 4 runs finished" in said and "--retry-failed" in said
    assert (
        "1 failed: WorkerDied: its process died every time" in said and "1 failed: RuntimeError: it is broken" in said
    )
    built = (tmp_path / "built").read_text().split()
    assert built.count("deadly") == 3
    (tmp_path / "mended").touch()
    said = sweep(spec, tmp_path / "out", "--retry-failed", "--json", script=script, status=1)
    told = json.loads(said.partition("written to")[0])
    assert (told["finished"], told["made"], len(told["failed"])) == (4, 2, 1)


@needs_dask
def test_a_scheduler_that_does_not_answer_is_one_line_within_seconds(tmp_path, whole):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        where, begin = f"tcp://127.0.0.1:{silent.getsockname()[1]}", time.monotonic()
        said, err = finish(start("sweep", whole[0], "--out", tmp_path / "out", "--scheduler", where), 2)
    assert time.monotonic() - begin < 15  # 4 seconds, and the time to start on a busy machine
    assert said == "" and err.count("\n") == 1 and f"{where}: no answer within 4 seconds" in err
    assert not (tmp_path / "out").exists()
