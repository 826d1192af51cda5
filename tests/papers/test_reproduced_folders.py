"""Folders of reproduced experiments: whole or not at all, read again, gone on with, never mixed."""

import json
import shutil

import pandas as pd
import pytest

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.papers import reproducing
from marketsched.papers.reproducing import reproduce, reproduce_all
from marketsched.results.result import load

NAMES = ["esdp-fig8", "opm-fig3", "esdp-fig7"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.compiled
def test_what_is_written(tmp_path):
    names = ["esdp-fig8", "opm-fig3"]
    steps = []
    found = reproduce_all(
        names, runs=2, slots=16, out=tmp_path / "out", progress=lambda done, total, what: steps.append((done, total))
    )
    for each in found:
        folder = tmp_path / "out" / each.meta["experiment"]
        written = {path.name for path in folder.iterdir()}
        assert written == {
            *"table.csv table.parquet lines.parquet runs.parquet timings.json summary.json figure.png meta.json".split()
        }
        assert list(pd.read_csv(folder / "table.csv")["verdict"]) == list(each.table["verdict"])
    overview = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert overview["complete"] and overview["experiments"] == names and overview["missing"] == []
    assert len(pd.read_parquet(tmp_path / "out" / "table.parquet")) == sum(len(each.table) for each in found)
    assert steps[0] == (0, 2)
    assert steps[-1] == (1, 2)
    with pytest.raises(InvalidParameterError):
        reproduce("esdp-fig8", runs=2, slots=16, out=tmp_path / "out" / "esdp-fig8")


@pytest.mark.slow
@pytest.mark.compiled
def test_what_is_written_can_be_read_again(tmp_path):
    made = reproduce("opm-fig1", runs=2, slots=16, out=tmp_path / "one")
    again = load(tmp_path / "one")
    assert again.to_dict()["claims"] == made.to_dict()["claims"] and again.outcome == made.outcome
    again.save(tmp_path / "two")
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert [(tmp_path / "two" / name).read_bytes() for name in files] == [
        (tmp_path / "one" / name).read_bytes() for name in files
    ]


def interrupted(out, at):
    """Start the experiments and stop as with Ctrl-C before the one of this number."""

    def progress(done, total, what):
        if done == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce_all(NAMES, runs=2, slots=16, out=out, progress=progress)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.compiled
def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(tmp_path, monkeypatch):
    interrupted(tmp_path / "out", 2)
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert not meta["complete"] and meta["missing"] == ["esdp-fig7"]
    assert set(pd.read_csv(tmp_path / "out" / "table.csv")["experiment"]) == set(NAMES[:2])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *NAMES[:2],
        "meta.json",
        "summary.json",
        "table.csv",
        "table.parquet",
    }
    run, real = [], reproducing.reproduce
    monkeypatch.setattr(reproducing, "reproduce", lambda name, **given: run.append(name) or real(name, **given))
    found = reproduce_all(NAMES, runs=2, slots=16, out=tmp_path / "out")
    assert run == ["esdp-fig7"]  # only what was missing
    whole = reproduce_all(NAMES, runs=2, slots=16, out=tmp_path / "whole")
    for one, other in zip(found, whole, strict=True):
        pd.testing.assert_frame_equal(one.table, other.table, check_dtype=False)
    assert json.loads((tmp_path / "out" / "meta.json").read_text())["complete"]
    one, other = (pd.read_parquet(tmp_path / name / "table.parquet") for name in ("out", "whole"))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.slow
@pytest.mark.compiled
def test_what_differs_is_not_taken_over(tmp_path, monkeypatch):
    reproduce_all(["esdp-fig8"], runs=2, slots=16, out=tmp_path)
    for change, words in (({"runs": 3}, "runs = 2 (here 3)"), ({"slots": 20}, "slots = 16"), ({"seed": 1}, "seed = 0")):
        given = {"runs": 2, "slots": 16, **change}
        with pytest.raises(InvalidParameterError, match="expected a new --out, or --force") as error:
            reproduce_all(["esdp-fig8", "opm-fig3"], out=tmp_path, **given)
        assert words in str(error.value)
    assert not (tmp_path / "opm-fig3").exists()  # refused before anything was run
    old = tmp_path.with_name("older") / "esdp-fig8"
    shutil.copytree(tmp_path / "esdp-fig8", old)
    meta = json.loads((old / "meta.json").read_text())
    (old / "meta.json").write_text(json.dumps({"experiment": "esdp-fig8", "place": "", "versions": meta["versions"]}))
    with pytest.raises(InvalidParameterError, match="does not say of which kind"):
        reproduce_all(["esdp-fig8"], runs=2, slots=16, out=old.parent)
    assert len(reproduce_all(["esdp-fig8"], runs=3, slots=16, out=tmp_path, force=True)[0].table) == 2
    monkeypatch.setattr("marketsched.papers.folder.fingerprint", lambda: {"numpy": "0", "code": "x"})
    with pytest.raises(InvalidParameterError, match=r"has numpy .* \(here 0\)"):
        reproduce_all(["esdp-fig8"], runs=3, slots=16, out=tmp_path)


@pytest.mark.compiled
def test_a_folder_with_other_content_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidParameterError, match=r"holds thesis\.tex, which is no experiment"):
        reproduce_all(["esdp-fig8"], runs=2, slots=16, out=tmp_path)
    with pytest.raises(InvalidParameterError, match="is not a folder"):
        reproduce_all(["esdp-fig8"], runs=2, slots=16, out=tmp_path / "thesis.tex")
    reproduce("esdp-fig8", runs=2, slots=16, out=tmp_path / "all" / "esdp-fig8")
    (tmp_path / "all" / "esdp-fig8" / "table.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidParameterError, match=r"esdp-fig8/table\.parquet is damaged"):
        reproduce_all(["esdp-fig8"], runs=2, slots=16, out=tmp_path / "all")
    assert {path.name for path in tmp_path.iterdir()} == {"thesis.tex", "all"}
