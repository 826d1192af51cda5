"""The report of a folder of results: one page, made of what is there, that asks nobody for anything."""

import base64
import json
import os
import re
import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.kinds import kind_names
from marketsched.results.result import Result, load
from marketsched.show.cli import app
from marketsched.show.reports.page import report_page
from marketsched.study.sweeps.records import arrow_table
from report_page_reader import Page
from stored_results import stored
from written_reproduction import write_reproduction

pytestmark = pytest.mark.slow  # a folder of each kind is played first

KINDS = kind_names()
HOSTILE = "<script>alert(1)</script> \"'&<img src=http://x.invalid/a>"
MARKET = {
    "name": HOSTILE,
    "description": "see https://example.invalid/ and </style><b>",
    "workload": {"kind": "synthetic-pipelines", "recurring_jobs": 8, "birth_rounds": 20},
    "mechanism": {"oracle": {"kind": "monte-carlo", "samples": 20}},
}
CLUSTER = {
    "name": "small & <b>bold</b>",
    "cluster": {"slots": 30, "policies": ["ogasched", "fairness"], "instance": {"kind": "small-integer"}},
}
VERSIONS = {"marketsched": "0.1.0", "python": "3.11.7", "code": "0123"}


def call(*arguments):
    return CliRunner().invoke(app, [str(x) for x in arguments], catch_exceptions=False)


def write_sweep(folder, cases, rows, **manifest):
    """Write what a sweep leaves: a table, a manifest, and a file for each run."""
    (folder / "runs").mkdir(parents=True)
    meta = {"kind": "sweep", "format": 1, "name": "a <i>sweep</i>", "versions": VERSIONS, "seeds": [0, 1, 2]}
    meta |= {"runs": len(rows), "cases": cases, "complete": True, "done": len(rows), "failed": 0, "durations": []}
    (folder / "meta.json").write_text(json.dumps({**meta, **manifest}))
    if rows:
        import pyarrow.parquet as pq

        pq.write_table(arrow_table(rows, {}), folder / "results.parquet")
    return folder


def write_experiment(folder):
    """Write what the reproduction of a table leaves."""
    write_reproduction(folder.with_name("all")).joinpath("esdp-fig8").rename(folder)
    shutil.rmtree(folder.with_name("all"))


def sweep_cases(*epsilons):
    return [
        {"case": i, "labels": {"mechanism.epsilon": x}, "scenario": {"name": "market", "epsilon": x}}
        for i, x in enumerate(epsilons)
    ]


def sweep_rows(cases, welfare, *, status="done"):
    """Return the rows of a table: ``welfare`` has a list of figures, seed by seed, for each case."""
    return [
        {
            "case": case["case"],
            "scenario": case["scenario"]["name"],
            **case["labels"],
            "seed": seed,
            "run": f"{case['case']}-{seed}",
            "status": status,
            "error": None,
            "welfare": figure,
        }
        for case, figures in zip(cases, welfare, strict=True)
        for seed, figure in enumerate(figures)
    ]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a folder of every kind, as commands write them; of some kinds that of the golden pages."""
    base = tmp_path_factory.mktemp("results")
    (base / "market.yaml").write_text(dump_yaml(MARKET))
    (base / "cluster.yaml").write_text(dump_yaml(CLUSTER))
    market, cluster = base / "market.yaml", base / "cluster.yaml"
    (base / "jobs.csv").write_text("submit,start,end,nodes,user\n0,0,600,2,ann\n30,600,900,1,eve\n60,900,999,2,ann\n")
    over = "cluster.slots=20,30"
    commands = {
        "market": ["run", market],
        "mechanisms": ["compare", market, "--runs", 2, "--optimum-seconds", 1],
        "audit": ["audit", market, "--owners", 2, "--budget", 0.3],
        "waits": ["waits", base / "jobs.csv", "--by", "user"],
        "cluster": ["run", cluster],
        "policies": ["compare", cluster, "--runs", 2, "--optimum-seconds", 0],
        "over": ["compare", cluster, "--runs", 2, "--optimum-seconds", 0, "--over", over],
    }
    for kind, command in commands.items():
        done = call(*command, "--out", base / kind)
        assert (base / kind / "meta.json").is_file(), done.output
    for kind in ("conduct", "learning", "loads"):
        (base / "stored" / kind).mkdir(parents=True)
        stored(kind, base / "stored" / kind).save(base / kind)
    shutil.rmtree(base / "stored")
    cases = sweep_cases(0.0, 0.1)
    write_sweep(base / "sweep", cases, sweep_rows(cases, [[1.0, 2.0, 3.0], [2.0, 3.5, 4.0]]))
    write_experiment(base / "experiment")
    write_reproduction(base / "reproduced")
    lie = {"policy": "drf", "payment": "none", "lie": "half", "pays": True}
    lie |= {f"{what}_{part}": 1.0 for what in ("gain", "others") for part in ("percent", "low", "high")}
    about = {"scenario": "small", "seed": 0, "fresh_worlds": 9, "confidence": 0.95, "versions": VERSIONS}
    Result("core-lies", {}, pd.DataFrame([lie]), about).save(base / "core-lies")
    (base / "results").mkdir()
    shutil.copy(base / "policies" / "summary.parquet", base / "results" / "figures.parquet")
    (base / "results" / "notes.md").write_text("why <it> differs\n")
    (base / "results" / "meta.json").write_text(json.dumps({"kind": "something new", "versions": VERSIONS}))
    return base


@pytest.fixture
def copy(folders, tmp_path):
    """Return a function that copies the folder of a kind, to be damaged."""
    return lambda kind: shutil.copytree(folders / kind, tmp_path / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_folder_becomes_a_page(folders, kind):
    folder = folders / kind
    result, text = load(folder), report_page(folder)
    assert result.kind == kind or kind == "results"
    page, meta = Page(text), json.loads((folder / "meta.json").read_text())
    assert page.tags.count("h1") == 1 and {"main", "table", "style", "title"} <= set(page.tags)
    for name, version in meta["versions"].items():
        assert name in page.texts["th"] and version in page.texts["td"]
    # Every picture of the folder is in the page, byte for byte.
    inside = [base64.b64decode(uri.partition(",")[2]) for uri in page.images]
    assert all(path.read_bytes() in inside for path in folder.glob("*.png"))
    for path in folder.glob("*.yaml"):
        assert path.read_text() in page.texts["pre"]
    for path in folder.iterdir():
        assert path.is_dir() or path.name in page.text
    assert ("INCOMPLETE" in text) == (not result.complete)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("sweep", "reproduced", "results")])
def test_what_is_loaded_draws_the_pictures_of_its_folder_and_is_saved_the_same(folders, kind, tmp_path):
    load(folders / kind).save(tmp_path / "again")
    names = sorted(path.name for path in (folders / kind).iterdir())
    assert names == sorted(path.name for path in (tmp_path / "again").iterdir())
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (folders / kind / name).read_bytes(), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_asks_nobody_for_anything(folders, kind):
    page = Page(report_page(folders / kind))
    assert not {"script", "iframe", "object", "embed", "form", "a", "video", "audio", "base"} & set(page.tags)
    allowed = {("link", "href", "data:,")}
    for tag, name, value in page.attributes:
        assert name in {
            *("alt", "charset", "class", "content", "href", "http-equiv", "id", "lang", "name", "open"),
            *("rel", "role", "scope", "src"),
        }
        if name in {"src", "href"}:
            assert (tag, name, value) in allowed or value.startswith("data:image/")
        else:
            assert "://" not in (value or "") or tag == "img"  # the words for a picture
    (style,) = page.texts["style"]
    assert not re.search(r"url\(|@import|//", style)


def test_the_policy_of_the_page_allows_its_own_style_alone(folders):
    import hashlib

    page = Page(report_page(folders / "market"))
    (policy,) = [v for t, n, v in page.attributes if n == "content" and "default-src" in v]
    (style,) = page.texts["style"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; img-src data:;") and f"style-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize("kind", ["market", "mechanisms", "audit"])
def test_hostile_names_are_words(folders, kind):
    text = report_page(folders / kind)
    page = Page(text)
    assert page.texts["h1"] == [HOSTILE]
    assert "<script" not in text and "<b>" not in text and "<img src=h" not in text
    assert "https://example.invalid/ and </style><b>" in page.text


def test_hostile_files_and_columns_are_words(copy):
    folder = copy("results")
    name = "<img src=x onerror=alert(1)>"
    pd.DataFrame({name: [name, "a\x00b"]}).to_parquet(folder / f"{name}.parquet".replace("/", "-"))
    text = report_page(folder)
    assert "<img src=x" not in text
    assert Page(text).texts["td"].count(name) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_equal_folders_give_equal_bytes(folders, kind, tmp_path):
    again = shutil.copytree(folders / kind, tmp_path / "elsewhere")
    assert report_page(again) == report_page(folders / kind)


def test_the_page_says_what_the_terminal_said(folders):
    done = call("run", folders / "cluster.yaml", "--out", folders / "again")
    page = Page(report_page(folders / "again"))
    words = " ".join(page.text.split())
    remarks = re.findall(r"^- (.*?)$", done.stdout, re.M)
    assert remarks and all(remark[:60] in words for remark in remarks)
    summary = pd.read_parquet(folders / "again" / "summary.parquet")
    assert set(summary["policy"]) <= set(page.texts["td"])


def test_an_incomplete_run_is_marked(copy):
    folder = copy("cluster")
    (folder / "INCOMPLETE").write_text("interrupted after 1 of 2 <policies>\n")
    page = Page(report_page(folder))
    assert ("p", "role", "alert") in page.attributes and "INCOMPLETE" in page.texts["strong"]
    assert "interrupted after 1 of 2 <policies>" in page.text


def test_a_manifest_that_says_incomplete_is_enough(copy):
    folder = copy("cluster")
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "complete": False}))
    assert "INCOMPLETE" in report_page(folder)


def test_a_sweep_of_failures_alone_is_a_page(tmp_path):
    cases = sweep_cases(0.0)
    rows = [{**row, "error": "no"} for row in sweep_rows(cases, [[1.0]], status="failed")]
    for row in rows:
        del row["welfare"]
    assert "failed: case" in report_page(write_sweep(tmp_path / "sweep", cases, rows, failed=1))


def test_a_killed_sweep_says_how_far_it_came(tmp_path):
    folder = write_sweep(tmp_path / "sweep", sweep_cases(0.0), [], runs=9)
    (folder / "INCOMPLETE").write_text("runs are missing: start the sweep again to go on\n")
    (folder / "runs" / "0123.json").write_text("{}")
    page = Page(report_page(folder))
    assert "1 of 9 runs are kept" in page.text and "INCOMPLETE" in page.text


def test_a_large_sweep_stays_readable(tmp_path):
    cases = sweep_cases(*(i / 1000 for i in range(300)))
    folder = write_sweep(tmp_path / "sweep", cases, sweep_rows(cases, [[1.0, 2.0, 3.0]] * 300))
    text = report_page(folder)
    assert "the first 200 of 300 lines" in text and "the first 200 of 900 rows" in text and len(text) < 500_000


def test_the_command_writes_into_the_folder_or_where_it_is_told(copy, tmp_path):
    folder = copy("market")
    done = call("report", folder)
    assert done.exit_code == 0 and done.stdout == f"written to {folder / 'report.html'}\n"
    first = (folder / "report.html").read_bytes()
    assert call("report", folder, "--out", tmp_path / "page.html").exit_code == 0
    assert (tmp_path / "page.html").read_bytes() == first  # an earlier report is not part of what is reported
    assert call("report", folder).exit_code == 0 and (folder / "report.html").read_bytes() == first


def spoil(folder, name, change):
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("policies", "summary.parquet", lambda b: b[: len(b) // 2]),
        ("policies", "runs.parquet", lambda b: b""),
        ("policies", "curves.parquet", lambda b: b[:-1]),
        ("sweep", "results.parquet", lambda b: b"PAR1" + bytes(50) + b"PAR1"),
        ("market", "summary.json", lambda b: b[:50]),
        ("market", "summary.json", lambda b: b"{}"),
        ("market", "summary.json", lambda b: b"[]"),
        ("market", "scenario.yaml", lambda b: b"\xff\xfe"),
        ("market", "figure.png", lambda b: b[:-5]),
        ("market", "meta.json", lambda b: b"{"),
        ("market", "meta.json", lambda b: b"[" * 100_000),
        ("market", "meta.json", lambda b: b"[]"),
        ("market", "meta.json", lambda b: b'{"versions": {"other": "1"}}'),
        ("cluster", "meta.json", lambda b: b'{"versions": {"marketsched": "0"}}'),
        ("sweep", "meta.json", lambda b: b'{"kind": "sweep", "versions": {"marketsched": "0"}}'),
        ("sweep", "meta.json", lambda b: b.replace(b'"durations": []', b'"durations": 7')),
    ],
)
def test_a_damaged_folder_is_one_clear_line(copy, kind, name, change):
    folder = copy(kind)
    spoil(folder, name, change)
    before = sorted(folder.iterdir())
    done = call("report", folder)
    assert done.exit_code == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert str(folder) in done.stderr and "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(("kind", "name"), [("market", "summary.json"), ("cluster", "summary.parquet")])
def test_a_missing_file_is_named(copy, kind, name):
    folder = copy(kind)
    (folder / name).unlink()
    with pytest.raises(InvalidParameterError, match=f"has no {name}: expected all files of a {kind} run"):
        report_page(folder)


def test_a_folder_that_is_not_ours_is_refused(folders, tmp_path):
    (tmp_path / "file").write_text("")
    for where, words in [
        (tmp_path / "absent", "is not there"),
        (tmp_path / "file", "is not a folder"),
        (tmp_path, "holds no meta.json"),
        (folders, "such as"),
    ]:
        done = call("report", where)
        assert done.exit_code == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_nothing_but_a_report_is_replaced(copy, tmp_path):
    folder, precious = copy("market"), tmp_path / "thesis.html"
    precious.write_text("<!doctype html>years of work")
    for out in (precious, folder / "meta.json", os.devnull):
        done = call("report", folder, "--out", out)
        assert done.exit_code == 2 and "is there and no report" in done.stderr
    assert precious.read_text() == "<!doctype html>years of work"
    for out, words in [(tmp_path, "Is a directory"), (tmp_path / "no" / "page.html", "No such file")]:
        done = call("report", folder, "--out", out)
        assert done.exit_code == 2 and words in done.stderr and done.stderr.count("\n") == 1
