"""The pages under docs/ against the code: what they list, cite and show is there, and their examples run."""

import csv
import doctest
import json
import re
import runpy
from pathlib import Path

import pytest

from marketsched.config.scenario import Scenario
from marketsched.config.strict_yaml import parse_yaml
from marketsched.mechanisms import guarantees
from marketsched.play.replaying import replay
from marketsched.worlds import GoogleParameters
from marketsched.worlds.traces import TRACES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])
SOURCES = sorted(
    p for room in ("mechanisms", "relaxed_lp", "agents", "marketsched") for p in (ROOT / room).rglob("*.py")
)
# "OgaSched (9)-(10)" and "(27) of the OgaSched paper": equations of the cores have a page of their own.
CITED_BY_PAPER = re.compile(
    r"(?P<paper>OgaSched|ESDP|OPM)(?: paper)?'?s? \(\d+\)(?:(?:-|, | and | or |/)\(\d+\))*|"
    r"(?:\(\d+\)(?:-|, | and )?)+ of the (?P<other>OgaSched|ESDP|OPM)(?: paper)?"
)


def fenced(page: str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_inside_the_repository_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_no_fence_has_a_backtick_in_its_first_line(page):
    """With one in its title a directive is plain text, and its end opens a block that swallows the rest of the page."""
    assert re.findall(r"^```+[^`\n]+`.*", page.read_text(), re.M) == []


def test_every_measured_table_stands_on_a_page_and_has_rows_of_one_length():
    named = {name for page in PAGES for name in re.findall(r"measured/([\w-]+)\.csv", page.read_text())}
    tables = {path.stem: path for path in (ROOT / "docs/measured").glob("*.csv")}
    assert named == set(tables)
    for name, path in tables.items():
        with path.open(newline="", encoding="utf-8") as lines:
            assert len({len(row) for row in csv.reader(lines)}) == 1, name


def test_every_trace_is_listed_with_its_files_and_licence():
    rows = list(csv.reader((ROOT / "docs/traces.csv").read_text().splitlines()))[1:]
    listed = {name.strip("`"): (re.findall("`(.*?)`", files), licence) for name, files, licence in rows}
    assert listed == {trace.name: (list(trace.files), trace.licence) for trace in TRACES.values()}


def test_figures_that_are_drawn_from_measured_tables_find_them():
    landing, schedulers = (runpy.run_path(str(ROOT / f"docs/{name}_figure.py")) for name in ("landing", "schedulers"))
    for name, market, _, lines in landing["PANELS"]:
        table = landing["table_of"](name, market)
        assert set(lines) < set(table) and len(table["load"]) >= 3
    cells = schedulers["cells_of"](ROOT / "docs/measured/schedulers.csv")
    assert len(cells) >= 5 and all({len(cell) for cell in rules.values()} == {2} for rules in cells.values())


def test_the_replay_page_shows_a_log_that_runs():
    (config,), (log,) = fenced("docs/replay.md", "yaml"), fenced("docs/replay.md", "json")
    lines = [line for line in log.splitlines() if json.loads(line)["event"] != "complete"]  # no job B there
    decisions = list(replay(parse_yaml(config, "docs/replay.md"), lines))
    assert [d["event"] for d in decisions] == ["plan", "start", "complete"]
    assert decisions[0]["starts"] == [[2, 2, 2], [3, 2, 3]]


def test_the_page_on_clusters_shows_scenarios_that_load():
    (page,) = (block for block in fenced("docs/resources.md", "yaml") if "workload" in block)
    texts = [page, *(path.read_text() for path in sorted(ROOT.glob("examples/gpu-cluster/*.yaml")))]
    found = [Scenario.from_dict(parse_yaml(text, "docs/resources.md")) for text in texts]
    kinds = ["openb", "sacct-shapes", "sacct-shapes", "cluster-jobs", "cluster-mix"]
    assert [each.workload.kind for each in found] == kinds
    assert {each.mechanism.name for each in found} == {"cluster-bid-price"}


SLOW_PAGES = [pytest.param(page, marks=pytest.mark.slow) for page in ("learning", "dashboard")]


@pytest.mark.parametrize("page", ["finite", "environments", *SLOW_PAGES])
def test_a_page_shows_what_comes_out(page):
    blocks = "".join(fenced(f"docs/{page}.md", "pycon"))
    test, shown = doctest.DocTestParser().get_doctest(blocks, {}, page, None, 0), []
    assert test.examples and doctest.DocTestRunner().run(test, out=shown.append).failed == 0, "".join(shown)


@pytest.mark.slow
def test_the_audit_page_shows_a_check_that_passes():
    (suite,) = fenced("docs/audit.md", "python")
    names = {}
    exec(compile(suite, "docs/audit.md", "exec"), names)
    for check in ("capacity is held", "truthful, one round"):
        names["test_bid_price"](check)


def test_every_gap_and_equation_that_code_cites_is_on_the_page():
    page = (ROOT / "docs/mathematics.md").read_text()
    text = "\n".join(path.read_text() for path in SOURCES)
    text = CITED_BY_PAPER.sub("", text)
    numbers = {int(n) for n in re.findall(r"(?<![\w\]`=)'])\((\d{1,2})'?\)", text)}
    assert {3, 6, 22, 28, 29} <= numbers  # the search finds what is known to be cited
    assert not [n for n in numbers if rf"\tag{{{n}}}" not in page]
    assert not [gap for gap in set(re.findall(r"\bG\d\b", text)) if f"**{gap}" not in page]


def test_every_equation_of_a_core_that_code_cites_is_on_its_page():
    page = " ".join(
        " ".join((ROOT / f"docs/{name}").read_text() for name in ("allocation.md", "equations.csv")).split()
    )
    text = "\n".join(path.read_text() for path in SOURCES)
    cited = {
        (found["paper"] or found["other"], number)
        for found in CITED_BY_PAPER.finditer(text)
        for number in re.findall(r"\d+", found[0])
    }
    assert {("OgaSched", "26"), ("ESDP", "20"), ("OPM", "73")} <= cited  # the search finds what is known to be cited
    assert not [f"{paper} ({number})" for paper, number in sorted(cited) if f"{paper} ({number})" not in page]


def test_the_files_that_contributors_are_sent_to_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = [p for p in re.findall(r"`([a-z_./]+(?:\.pyi?|\.md|/))`", text) if "/" in p.rstrip("/")]
    assert len(paths) > 30
    assert [p for p in paths if not (ROOT / p).exists()] == []


def test_every_equation_is_in_the_file_that_contributors_are_sent_to():
    rows = re.findall(r"^\| (\([^|]*) \| (`[^|]*`) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    for equations, files in rows:
        text = "".join((ROOT / path).read_text() for path in re.findall("`(.*?)`", files))
        cited = {int(n) for n in re.findall(r"\((\d+)", text)}
        cited |= {n for a, b in re.findall(r"\((\d+)\)-\((\d+)\)", text) for n in range(int(a), int(b) + 1)}
        assert {int(n) for n in re.findall(r"\((\d+)", equations)} <= cited, files
    assert "(22)" in dict((files, equations) for equations, files in rows)["`mechanisms/posted/run_certificate.py`"]


def test_the_readme_names_the_capacity_the_theorem_needs():
    workload, mechanism = Scenario.load("google-recurring").workload, Scenario.load("google-recurring").mechanism
    found = guarantees(
        max_concurrency=workload.max_concurrency,
        max_duration=workload.max_duration,
        max_value=40.0 * workload.max_concurrency * workload.max_duration,
        max_delay=GoogleParameters().max_delay,
        epsilon=mechanism.epsilon,
        floor=mechanism.pricing.floor,
        ceiling=mechanism.pricing.ceiling,
    )
    assert f"{found.smallest_capacity:,} nodes for `google-recurring`, which has {workload.capacity}" in " ".join(
        (ROOT / "README.md").read_text().split()
    )
