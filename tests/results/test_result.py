"""A result comes back from its folder as it was, and prints and draws the same."""

import io
import json
import pickle

import pandas as pd
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from marketsched.mechanisms import InvalidParameterError
from marketsched.play.running import run
from marketsched.results import tables
from marketsched.results.kinds import kind_of
from marketsched.results.panels import save_figure
from marketsched.results.result import Result, load
from refusals import refused

MARKET = {
    "name": "small & <b>",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 8, "birth_rounds": 20},
    "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 20}},
}
VERSIONS = {"marketsched": "0.1.0"}


def a_result(**meta):
    runs = pd.DataFrame({"seed": [0, 1], "seconds": [0.25, 0.5], "welfare": [3.0, float("nan")]})
    summary = pd.DataFrame({"mechanism": ["a", "b"], "welfare": [3.0, 4.0]})
    return Result("notes", {"runs": runs}, summary, {"scenario": "x", "seed": 0, "versions": VERSIONS, **meta})


def printed(result):
    console = Console(file=io.StringIO(), width=120)
    console.print(result.view())
    return console.file.getvalue()


@pytest.fixture(scope="module")
def market():
    return run(MARKET)


@pytest.mark.slow
def test_a_market_comes_back_from_its_folder_prints_and_draws_the_same(market, tmp_path):
    market.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.kind == "market" and set(again.tables) == set(market.tables) >= {"events", "jobs", "rounds"}
    for name, table in market.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table)
    assert again.texts == market.texts and again.meta["seed"] == 0 and again.complete
    assert again.outcome["welfare"] == market.outcome["welfare"]
    assert printed(again) == printed(market)
    for i, each in enumerate((market, again)):
        save_figure(each.plot(), tmp_path / f"{i}.png")
    pictures = [path.read_bytes() for path in (tmp_path / "0.png", tmp_path / "1.png", tmp_path / "run" / "figure.png")]
    assert pictures[0] == pictures[1] == pictures[2]


def test_a_notebook_draws_the_figure_that_is_the_last_line_of_a_cell(market):
    picture = market.plot()._repr_png_()
    assert picture.startswith(b"\x89PNG") and picture == market.plot()._repr_png_()


@pytest.mark.slow
def test_a_long_table_is_written_in_parts_before_anybody_has_looked_at_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "PART_ROWS", 7)
    fresh = run(MARKET)
    fresh.save(tmp_path / "run")
    assert pq.ParquetFile(tmp_path / "run" / "events.parquet").num_row_groups == -(-len(fresh.events) // 7) > 2
    pd.testing.assert_frame_equal(load(tmp_path / "run").events, fresh.events)
    resubmitted = fresh.events["statement"].str.endswith("+")
    assert (fresh.events["statement"].str.removesuffix("+") == fresh.events["job"]).all() and not resubmitted.all()


def test_a_result_is_its_tables(market):
    assert market.jobs is market.tables["jobs"] is market.to_frame() and market.to_frame("rounds") is market.rounds
    with pytest.raises(AttributeError, match=r"kind 'market' has no 'slots': it has \['events', 'jobs', 'rounds'"):
        market.slots  # noqa: B018
    with pytest.raises(InvalidParameterError, match="table 'slots': expected one of events, jobs"):
        market.to_frame("slots")
    (row,) = market.records()
    frame = market.summary
    assert frame is market.to_frame("summary") and len(frame) == 1
    assert row["welfare"] == frame["welfare"].item() == market.outcome["welfare"]
    assert frame["first_come.best_price"].item() == market.outcome["first_come"]["best_price"]
    assert pickle.loads(pickle.dumps(market)).to_dict() == market.to_dict()
    assert repr(market).startswith("Result(market: small & <b>; events ")
    assert repr(a_result()).startswith("Result(notes: x; summary 2, runs ")


def test_a_notebook_shows_summary_and_figure_and_reads_names_as_words(market):
    page = market._repr_html_()
    assert "welfare, credits" in page and "<b>:" not in page and "small &amp; &lt;b&gt;" in page
    assert page.count("data:image/png;base64,") == 1 and len(page) < 200_000
    assert "<table" in a_result()._repr_html_()  # a kind nothing is known of shows its table


def test_seconds_are_kept_beside_the_tables_whose_bytes_are_those_of_the_seed(tmp_path):
    first, second = a_result(), a_result()
    second.runs["seconds"] = [7.0, 8.0]
    first.save(tmp_path / "a")
    second.save(tmp_path / "b")
    assert (tmp_path / "a" / "runs.parquet").read_bytes() == (tmp_path / "b" / "runs.parquet").read_bytes()
    assert "seconds" not in pd.read_parquet(tmp_path / "a" / "runs.parquet")
    for name, made in {"a": first, "b": second}.items():
        pd.testing.assert_frame_equal(load(tmp_path / name).runs, made.runs)
    pd.testing.assert_frame_equal(load(tmp_path / "a").summary, first.summary)
    assert first.outcome == load(tmp_path / "a").outcome == {}


def test_an_interrupted_result_is_marked_and_loads_as_such(tmp_path):
    a_result(complete=False).save(tmp_path / "run")
    assert (tmp_path / "run" / "INCOMPLETE").read_text() == "interrupted before the end; what is here is finished\n"
    again = load(tmp_path / "run")
    assert not again.complete and again.how_far == "before the end" and "INTERRUPTED" in again._repr_html_()
    (tmp_path / "run" / "INCOMPLETE").unlink()
    with pytest.raises(InvalidParameterError, match="has no INCOMPLETE: expected all files of a results"):
        load(tmp_path / "run")


def test_a_folder_of_an_earlier_version_is_refused_in_one_line(tmp_path):
    (tmp_path / "meta.json").write_text(json.dumps({"scenario": "x", "versions": VERSIONS}))
    with pytest.raises(
        InvalidParameterError, match=r"does not say of which kind .* \(written by marketsched 0.1.0\): expected"
    ):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("runs.parquet", b"", "runs.parquet is damaged: expected a Parquet table"),
        ("runs.parquet", b"PAR1" + bytes(50) + b"PAR1", "runs.parquet is damaged: expected a Parquet table"),
        ("summary.parquet", None, "has no summary.parquet: expected all files of a results"),
        ("timings.json", b"{", "timings.json is damaged: expected JSON"),
        ("notes.md", b"\xff\xfe", "notes.md is damaged: expected UTF-8 text"),
        ("meta.json", b"[" * 100_000, "meta.json is damaged: expected JSON"),
        ("meta.json", b"[]", "meta.json names no version of marketsched: expected a folder that marketsched wrote"),
        ("meta.json", b'{"versions": {"other": "1"}}', "meta.json names no version of marketsched"),
        ("meta.json", b'{"versions": {"marketsched": "0"}, "kind": 7}', "does not say of which kind the results are"),
        ("meta.json", None, "run holds no meta.json: expected a folder that marketsched wrote"),
    ],
)
def test_a_damaged_folder_is_refused_with_what_is_damaged(tmp_path, name, content, words):
    a_result().save(tmp_path / "run")
    path = tmp_path / "run" / name
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    refused(lambda: load(tmp_path / "run"), words, error=InvalidParameterError)


def test_a_folder_that_holds_no_result_is_refused(tmp_path):
    a_result().save(tmp_path / "inside")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "meta.json").write_text("{}")
    (tmp_path / "file").write_text("")
    hint = f"holds no meta.json: expected a folder that marketsched wrote, such as {tmp_path / 'inside'}"
    for where, words in (("absent", "is not there"), ("file", "is not a folder"), ("", hint)):
        refused(lambda where=where: load(tmp_path / where), words, error=InvalidParameterError)
    single = Result("notes", meta={"versions": VERSIONS}, outcome={"best": 3.0})
    single.save(tmp_path / "single")
    (tmp_path / "single" / "summary.json").write_text("[]")
    refused(lambda: load(tmp_path / "single"), "summary.json is damaged: expected figures by name")


def test_a_kind_nothing_is_known_of_loads_all_the_same(tmp_path):
    a_result().save(tmp_path / "run")
    assert kind_of("notes").title == "results" and load(tmp_path / "run").view() is None
