"""The report of the papers' experiments: one page with every picture, claim and verdict."""

import base64
import shutil

import pytest
from typer.testing import CliRunner

from marketsched.show.cli import app
from marketsched.show.reports.page import report_page
from report_page_reader import Page
from written_reproduction import write_reproduction


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write a folder of two experiments once."""
    return write_reproduction(tmp_path_factory.mktemp("written") / "reproduced")


@pytest.fixture
def folder(written, tmp_path):
    """Return a copy of the folder of two experiments."""
    return shutil.copytree(written, tmp_path / "reproduced")


@pytest.mark.slow
def test_a_reproduction_is_one_page_with_every_experiment(folder):
    page = Page(report_page(folder))
    inside = [base64.b64decode(uri.partition(",")[2]) for uri in page.images]
    pictures = [path.read_bytes() for path in sorted(folder.glob("*/figure.png"))]
    assert inside == pictures and len(pictures) == 2
    cells = page.texts["td"]
    paper = cells.index("ESDP paper")
    assert cells[paper : paper + 8] == ["ESDP paper", "1", "3", "1", "1", "0", "0", "1"]  # claims, then each verdict
    both = cells.index("all")
    assert cells[both : both + 8] == ["all", "2", "4", "2", "1", "0", "0", "1"]
    assert {"share <b>", "level", "gain", "not reproduced (1)", "same direction (2)"} <= set(cells)
    assert "known [sic]" in page.text and "<b>" not in report_page(folder)
    assert ("td", "class", "bad") in page.attributes and ("td", "class", "good") in page.attributes


@pytest.mark.slow
def test_one_experiment_of_a_reproduction_is_a_page(folder):
    page = Page(report_page(folder / "esdp-fig8"))
    assert {"share <b>", "0.2", "0.85", "not reproduced (1)"} <= set(page.texts["td"])
    assert "All columns" in page.text and "Every run" in page.text


@pytest.mark.slow
def test_a_reproduction_that_was_interrupted_says_what_is_missing(tmp_path):
    page = Page(report_page(write_reproduction(tmp_path / "out", missing=["opm-fig1"])))
    assert "INCOMPLETE" in page.text and "not run: opm-fig1" in page.text


@pytest.mark.parametrize("name", ["table.parquet", "lines.parquet", "figure.png", "meta.json"])
def test_a_damaged_experiment_of_a_reproduction_is_one_clear_line(folder, name):
    path = folder / "opm-fig3" / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and str(folder / "opm-fig3") in done.stderr
    assert not (folder / "report.html").exists()
