"""What a report says of each kind of folder: headline, tables, remarks and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.results.kinds import kind_of
from marketsched.results.result import load
from marketsched.show.reports.reading import KINDS, Results, read_results
from marketsched.show.reports.tables import ReportTable, frame_table, pairs_table, rich_parts, summary_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DOCUMENTS = 12  # scenarios of a sweep on the page; the manifest holds all
OPEN_LINES = 40  # a longer document is folded


@dataclass(frozen=True, slots=True)
class Document:
    """A text shown as it is, folded if it is long."""

    title: str
    text: str

    @property
    def short(self) -> bool:
        """Whether it is shown at once."""
        return self.text.count("\n") <= OPEN_LINES


@dataclass(frozen=True, slots=True)
class Section:
    """One of several results on a page; ``pictures``: titles and data URIs."""

    title: str
    head: str
    pictures: tuple[tuple[str, str], ...]
    tables: tuple[ReportTable, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class Parts:
    """What stands on the page, from top to bottom; ``details`` are folded."""

    name: str = ""
    head: str = ""
    tables: list[ReportTable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[tuple[str, Figure]] = field(default_factory=list)  # drawn here, before those in the folder
    sections: list[Section] = field(default_factory=list)
    details: list[ReportTable] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)

    def show(self, view: Any) -> None:
        """Take over what a command prints."""
        self.head, tables, notes = rich_parts(view)
        self.tables += tables
        self.notes += notes


def parts_of(found: Results) -> Parts:
    """Return what a report says of a folder.

    Raises
    ------
    InvalidParameterError
        If a file is missing or damaged, or holds other columns than we write.
    """
    parts = Parts(name=str(found.meta.get("scenario", found.meta.get("name", KINDS[found.kind]))))
    with as_we_write(found):
        _FILLERS[found.kind](found, parts)
        for name in sorted(found.names("*.yaml"), key=lambda name: (name != "scenario.yaml", name)):
            parts.documents.append(Document(name, found.text(name)))
    return parts


@contextmanager
def as_we_write(found: Results) -> Iterator[None]:
    """Turn what surprises us in a folder into one clear line."""
    try:
        yield
    except MarketschedError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        made = found.meta["versions"]["marketsched"]
        raise InvalidParameterError(
            f"{found.path} is damaged, or of another version (made with {made}): {type(error).__name__}: {error}"
        ) from error


def _cluster(found: Results, parts: Parts) -> None:
    from marketsched.clusters.view import run_view
    from marketsched.play.policies import ClusterRun

    summary, none = found.table("summary.parquet"), _no_rows()

    def view(scenario: Any) -> Any:
        return run_view(ClusterRun(scenario, none, summary, found.incomplete is None, found.meta, none))

    _as_printed(found, parts, view, summary, ("policy",))


def _policies(found: Results, parts: Parts) -> None:
    from marketsched.clusters.view import comparison_view
    from marketsched.study.comparisons.comparing import Comparison

    summary, runs = found.table("summary.parquet"), found.table("runs.parquet")

    def view(scenario: Any) -> Any:
        complete = found.incomplete is None
        return comparison_view(Comparison(scenario, runs, summary, complete, found.meta))

    _as_printed(found, parts, view, summary, ("policy",))
    parts.details.append(frame_table("Every run", runs))


def _over(found: Results, parts: Parts) -> None:
    from marketsched.clusters.sweep_results import sweep_view
    from marketsched.study.comparisons.over import Compared

    summary, runs = found.table("summary.parquet"), found.table("runs.parquet")

    def view(scenario: Any) -> Any:
        return sweep_view(Compared(scenario, runs, summary, found.incomplete is None, found.meta))

    _as_printed(found, parts, view, summary, ("value", "policy"))
    parts.details.append(frame_table("Every run", runs))


def _mechanisms(found: Results, parts: Parts) -> None:
    from marketsched.show.comparison_view import comparison_view
    from marketsched.study.comparisons.comparing import Comparison

    summary, runs = found.table("summary.parquet"), found.table("runs.parquet")

    def view(scenario: Any) -> Any:
        return comparison_view(Comparison(scenario, runs, summary, found.incomplete is None, found.meta))

    _as_printed(found, parts, view, summary, ("mechanism",))
    parts.details.append(frame_table("Every run", runs))


def _by_kind(found: Results, parts: Parts) -> None:
    """Show what the kind of a result says of it."""
    result = load(found.path)
    look = kind_of(result.kind)
    parts.name = look.name(result)
    parts.show(look.view(result))
    for title, each in look.details(result).items():
        if isinstance(each, Mapping):
            parts.details.append(pairs_table(title, each.items()))
        else:
            parts.details.append(summary_table(title, each, look.by if title == "All figures" else ()))


def _sweep(found: Results, parts: Parts) -> None:
    from marketsched.config.strict_yaml import dump_yaml
    from marketsched.show.reports.sweep import failures_table, labels_of, sweep_figure, sweep_table
    from marketsched.study.sweeps.folder import RUNS, TABLE

    meta = found.meta
    done, labels = sum(1 for _ in (found.path / RUNS).glob("*.json")), labels_of(meta)
    parts.head = f"{parts.name}: {len(labels):,} cases, {len(meta['seeds']):,} seeds, {meta['runs']:,} runs"
    if meta.get("failed"):
        parts.notes.append(f"{meta['failed']:,} of {meta['runs']:,} runs failed; figures are of the others")
    if found.has(TABLE):
        table = found.table(TABLE)
        parts.tables.append(sweep_table(table, labels))
        failed = failures_table(table, labels)
        parts.tables += [] if failed is None else [failed]
        drawn = sweep_figure(table, labels)
        if drawn is not None:
            parts.figures.append(("means over seeds with 95 % intervals, one line for each case", drawn))
        parts.details.append(frame_table("Every run", table))
    else:
        parts.notes.append(f"{done:,} of {meta['runs']:,} runs are kept; the table is written when the sweep ends")
    for case in meta["cases"][:MOST_DOCUMENTS]:
        parts.documents.append(Document(f"scenario: {labels[int(case['case'])]}", dump_yaml(case["scenario"])))
    if len(meta["cases"]) > MOST_DOCUMENTS:
        parts.notes.append(f"scenarios of the first {MOST_DOCUMENTS} cases are shown; meta.json holds all")


def _reproduced(found: Results, parts: Parts) -> None:
    from marketsched.show.reports.reproduced import overview, section

    parts.name, parts.head = "The papers' tables and figures", "the papers' numbers, ours, and a verdict on every claim"
    folders = [read_results(found.path / name) for name in found.meta["experiments"]]
    parts.tables += overview(folders)
    parts.notes.append("[95 %]: interval over seeds, from which the verdict follows by one rule (docs/reproduce.md)")
    if found.meta["missing"]:
        parts.notes.append(f"not run: {', '.join(found.meta['missing'])}")
    for folder in folders:
        with as_we_write(folder):
            parts.sections.append(Section(*section(folder)))


def _results(found: Results, parts: Parts) -> None:
    """Show what is there: small tables first, then texts."""
    for name in found.names("*.parquet"):
        parts.tables.append(frame_table(name.removesuffix(".parquet"), found.table(name)))
    for name in found.names("*.md", "*.txt"):
        parts.documents.append(Document(name, found.text(name)))


_FILLERS: dict[str, Callable[[Results, Parts], None]] = {
    "market": _by_kind,
    "cluster": _cluster,
    "policies": _policies,
    "over": _over,
    "mechanisms": _mechanisms,
    "audit": _by_kind,
    "hard": _by_kind,
    "learning": _by_kind,
    "sweep": _sweep,
    "experiment": _by_kind,
    "reproduced": _reproduced,
    "results": _results,
}


def _as_printed(found: Results, parts: Parts, view: Callable[[Any], Any], summary: Any, by: tuple[str, ...]) -> None:
    """Show what the command printed, and all figures; if this version cannot read the scenario, the latter alone."""
    scenario = _scenario(found)
    if scenario is None:
        parts.notes.append("this version does not read the scenario of this folder: its figures are shown as stored")
        parts.tables.append(summary_table("All figures", summary, by))
        return
    parts.show(view(scenario))
    parts.details.append(summary_table("All figures", summary, by))


def _scenario(found: Results) -> Any:
    """Return the scenario of a folder, or None if this version does not read it."""
    from marketsched.config.scenario import Scenario
    from marketsched.config.strict_yaml import parse_yaml

    source = str(found.path / "scenario.yaml")
    content = parse_yaml(found.text("scenario.yaml"), source)
    try:
        return Scenario.from_dict(content, source=source)
    except MarketschedError:
        return None


def _no_rows() -> Any:
    import pandas as pd

    return pd.DataFrame()
