"""Many experiments of the papers in a report: how many claims have which verdict."""

from __future__ import annotations

from collections.abc import Sequence

from marketsched.results.experiment_kind import COLOURS as VERDICTS
from marketsched.results.result import Result
from marketsched.results.views import Shown, told


def overview(experiments: Sequence[Result]) -> list[Shown]:
    """Return the counts of verdicts: of every paper and of all, then of every experiment."""
    papers: dict[str, list[int]] = {}
    lines = []
    for found in experiments:
        verdicts = found.table["verdict"].tolist()
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
        Shown("Verdicts", ("", "experiments", *words), (False, *[True] * (1 + len(words))), above),
        Shown(
            "Experiments",
            ("", "shows", "sizes", "seeds", *words),
            (*[False] * 3, *[True] * (1 + len(words))),
            tuple(lines),
        ),
    ]
