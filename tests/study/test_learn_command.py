"""Comparing mechanisms by what owners learn: the function, the command, its folder and its report."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.results.output import INCOMPLETE
from marketsched.show.cli import app
from marketsched.study.learning.comparing import compare_learning
from marketsched.study.learning.curves import learning_curves

FILES = {"curves.parquet", "runs.parquet", "summary.parquet", "summary.json", "figure.png", "meta.json"}
SMALL = ("--mechanisms", "vcg,pay-as-bid", "--owners", 3, "--nodes", 1, "--days", 12, "--seeds", 3, "--workers", 1)


def call(*arguments):
    return CliRunner().invoke(app, ["learn", *map(str, arguments)], catch_exceptions=False)


def small(mechanisms=("vcg", "pay-as-bid"), **options):
    return compare_learning(mechanisms, **{"owners": 3, "nodes": 1, "days": 12, "runs": 3, **options})


@pytest.mark.slow
def test_the_command_writes_what_the_function_returns(tmp_path):
    done = call(*SMALL, "--seed", 4, "--out", tmp_path / "out")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "3 owners, 1 nodes, 12 days, 3 seeds" in done.stdout
    assert done.stdout.endswith(f"written to {tmp_path / 'out'}\n")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    found = small(seed=4)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out" / "runs.parquet"), found.runs)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out" / "curves.parquet"), found.curves)
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert (meta["seeds"], meta["complete"], meta["kind"]) == ([4, 5, 6], True, "learning")
    assert call(*SMALL, "--out", tmp_path / "out").exit_code == 2  # kept until replaced on demand


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"mechanisms": ["exponental"]},
            UnknownNameError,
            "'exponental' is unknown: expected one of armada, bid-price",
        ),
        ({"mechanisms": ["vcg", "vcg"]}, InvalidParameterError, "named twice"),
        ({"mechanisms": []}, InvalidParameterError, "at least one name"),
        ({"mechanisms": ["stochastic"]}, InvalidParameterError, "needs the laws"),
        ({"mechanisms": ["posted-price:2"]}, InvalidParameterError, "as in posted-price:epsilon=0.1"),
        ({"mechanisms": ["vcg:capacity=9"]}, InvalidParameterError, "the same market for all"),
        ({"mechanisms": ["vcg:color=9"]}, InvalidParameterError, "color"),
        ({"learner": "clever"}, UnknownNameError, "learner 'clever' is unknown: expected one of adahedge"),
        ({"days": 3}, InvalidParameterError, "days = 3"),
        ({"runs": 1}, InvalidParameterError, "runs = 1"),
        ({"owners": 0}, InvalidParameterError, "n_owners = 0"),
    ],
)
def test_errors_come_before_anything_is_played(options, error, message):
    with pytest.raises(error, match=message):
        small(**options)


def test_the_command_says_what_is_wrong_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, words in ((["--mechanisms", ","], "separated by commas"), (["--learner", "me"], "adahedge")):
        done = call(*arguments)
        assert (done.exit_code, done.stdout) == (2, "") and done.stderr.count("\n") == 1
        assert words in done.stderr and not (tmp_path / "runs").exists()


def stop_after(count):
    def progress(what, done, total):
        if done == count:
            raise KeyboardInterrupt

    return progress


@pytest.mark.slow
@pytest.mark.long
def test_an_interruption_keeps_the_seeds_that_all_mechanisms_have():
    whole = small()
    kept = small(progress=stop_after(5), keep_interrupted=True)
    assert not kept.complete and kept.meta["seeds"] == [0, 1] and kept.meta["seeds_asked_for"] == 3
    assert kept.runs.equals(whole.runs[whole.runs["seed"] < 2].reset_index(drop=True))
    with pytest.raises(KeyboardInterrupt):
        small(progress=stop_after(5))
    with pytest.raises(KeyboardInterrupt):  # one seed has no interval
        small(progress=stop_after(3), keep_interrupted=True)


@pytest.mark.slow
def test_an_interrupted_command_leaves_a_marked_folder(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        return learning_curves(*arguments, **{**options, "progress": stop_after(4)})

    monkeypatch.setattr("marketsched.study.learning.comparing.learning_curves", interrupted)
    done = call(*SMALL, "--out", tmp_path / "out")
    assert done.exit_code == 130 and "INTERRUPTED after 2 of 3 seeds" in done.stdout
    assert done.stderr.startswith("marketsched: interrupted after 2 of 3 seeds") and done.stderr.count("\n") == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES | {INCOMPLETE}
    assert json.loads((tmp_path / "out" / "meta.json").read_text())["complete"] is False


@pytest.mark.slow
def test_a_signal_ends_workers_too_and_nobody_complains(tmp_path):
    command = [sys.executable, "-m", "marketsched", "learn", "--out", "out", "--workers", "2", "--days", "40"]
    done = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(6)
    os.killpg(done.pid, signal.SIGINT)  # as a terminal does: to all processes
    _, errors = done.communicate(timeout=120)
    assert done.returncode == 130 and errors.count("\n") == 1 and errors.startswith("marketsched: interrupted")
    if (tmp_path / "out").exists():
        assert (tmp_path / "out" / INCOMPLETE).is_file()
