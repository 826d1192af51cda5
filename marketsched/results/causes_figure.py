"""The figure of why jobs waited under each rule: mean hours by cause, of all jobs, by class and by width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from marketsched.results.overtaking import Causes
from marketsched.results.panels import GREY, INK, MUTED, OKABE_ITO

if TYPE_CHECKING:
    import pandas as pd

WORDS = {
    "before": ("runs that began before it came", MUTED),
    "ahead": ("jobs ahead of it", GREY),
    "passed": ("later jobs that passed it", OKABE_ITO[5]),
    "kept": ("idle nodes, kept for another", OKABE_ITO[4]),
    "own": ("its own limit: price, purse, quota, patience", OKABE_ITO[2]),
    "lost": ("its own runs that were taken back", OKABE_ITO[3]),
}
CLASSES = {"0": "patient", "1": "middle", "2": "urgent"}  # of logs


def causes_figure(causes: pd.DataFrame, scenario: str) -> Figure:
    """Return the figure: a panel for each group of jobs, in it a bar for each mechanism.

    Parameters
    ----------
    causes : DataFrame
        As `marketsched.results.overtaking.causes_table`, of several seeds and mechanisms.
    scenario : str
        Its name.
    """
    sums = causes.groupby(["by", "name", "mechanism"], sort=False)[["jobs", *Causes._fields]].sum()
    hours = sums[list(Causes._fields)].div(sums["jobs"], axis=0).reset_index()
    mechanisms = list(dict.fromkeys(hours["mechanism"]))
    groups = list(dict.fromkeys(zip(hours["by"], hours["name"], strict=True)))
    figure = Figure(figsize=(max(12.0, 2.6 * len(groups)), 2.4 + 0.34 * len(mechanisms)), facecolor="white")
    panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    height = figure.get_figheight()
    figure.subplots_adjust(left=0.2, right=0.985, top=1 - 1.35 / height, bottom=0.6 / height, wspace=0.12)
    figure.text(
        0.012, 1 - 0.1 / height, f"why jobs waited: {scenario}", fontsize=16, fontweight="bold", va="top", color=INK
    )
    for axes, (by, name) in zip(panels, groups, strict=True):
        own = hours[(hours["by"] == by) & (hours["name"] == name)].set_index("mechanism").reindex(mechanisms)
        left = 0.0 * own["before"]
        for cause, (words, colour) in WORDS.items():
            axes.barh(range(len(mechanisms)), own[cause], left=left, color=colour, label=words)
            left = left + own[cause].fillna(0.0)
        axes.set_title(
            CLASSES.get(name, f"class {name}") if by == "class" else name, fontsize=11, loc="left", color=MUTED
        )
        axes.set_xlabel("mean wait, h")
        axes.set_ylim(len(mechanisms) - 0.5, -0.5)
    panels[0].set_yticks(range(len(mechanisms)), mechanisms)
    handles, labels = panels[0].get_legend_handles_labels()
    look: dict[str, Any] = {"frameon": False, "fontsize": 10, "ncols": 3, "loc": "upper left"}
    figure.legend(handles, labels, bbox_to_anchor=(0.005, 1 - 0.42 / height), **look)
    return figure
