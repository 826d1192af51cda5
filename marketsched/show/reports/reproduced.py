"""Experiments of the papers in a report: claims as the command prints them, and an overview of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from marketsched.show.reports.tables import ReportTable, rich_parts, told

if TYPE_CHECKING:
    from marketsched.show.reports.reading import Results


def section(
    found: Results,
) -> tuple[str, str, tuple[tuple[str, str], ...], tuple[ReportTable, ...], tuple[str, ...]]:
    """Return title, headline, picture, claims and reasons of one experiment, in the order of `Section`."""
    from marketsched.results.result import load

    head, tables, notes = rich_parts(load(found.path).view())
    picture = (str(found.meta["experiment"]), found.picture("figure.png"))
    return str(found.meta["place"]), head, (picture,), tuple(tables), tuple(notes)


def overview(folders: Sequence[Results]) -> list[ReportTable]:
    """Return the counts of verdicts: of every paper and of all, then of every experiment."""
    from marketsched.results.experiment_kind import COLOURS as VERDICTS

    papers: dict[str, list[int]] = {}
    lines = []
    for found in folders:
        verdicts = found.table("table.parquet")["verdict"].tolist()
        counts = [verdicts.count(word) for word in VERDICTS]
        meta = found.meta
        sizes = f"{meta['sizes']}{'' if meta['full'] else ' (reduced)'}"
        figures = (len(verdicts), *counts)
        lines.append((str(meta["place"]), str(meta["shows"]), sizes, *map(told, (meta["runs"], *figures))))
        total = papers.setdefault(str(meta["place"]).partition(",")[0], [0] * (2 + len(VERDICTS)))
        papers[str(meta["place"]).partition(",")[0]] = [x + y for x, y in zip(total, (1, *figures), strict=True)]
    if len(papers) > 1:
        papers["all"] = [sum(column) for column in zip(*papers.values(), strict=True)]
    words = ("claims", *VERDICTS)
    above = tuple((paper, *map(told, counts)) for paper, counts in papers.items())
    return [
        ReportTable("Verdicts", ("", "experiments", *words), (False, *[True] * (1 + len(words))), above),
        ReportTable(
            "Experiments",
            ("", "shows", "sizes", "seeds", *words),
            (*[False] * 3, *[True] * (1 + len(words))),
            tuple(lines),
        ),
    ]
