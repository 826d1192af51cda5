"""The figure of docs/schedulers.md: docs/measured/schedulers.csv, a dot for each rule, log and load.

python docs/schedulers_figure.py    # writes examples/figures/schedulers.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from marketsched import figure_style

ROOT = Path(__file__).resolve().parent.parent
LOADS = ("0.7", "1")
RULES = {  # column of the table: label, colour, marker; the first is drawn last
    "two-offers": ("two offers", "C0", "o"),
    "easy-backfill:order=class": ("EASY, three queues by class", "C2", "D"),
    "fair-turns": ("fair turns", "C3", "p"),
    "credits": ("credits", "C1", "s"),
    "fair-share": ("fair share", "0.35", "^"),
    "easy-backfill": ("EASY, first come first served", "0.65", "v"),
}
CELLS = dict[str, dict[str, list[float]]]  # log: rule: per cent of the bound, by load


def cells_of(path: Path) -> CELLS:
    """Return the table of a CSV file, without the logs on which all rules get everything."""
    table = pd.read_csv(path, dtype={"load": str})
    found = {
        str(log): {rule: [float(rows.loc[load, rule]) for load in LOADS] for rule in RULES}
        for log, rows in table.set_index("load").groupby("log", sort=False)
    }
    return {log: rules for log, rules in found.items() if min(map(min, rules.values())) < 99.0}


def panel(axis: Axes, cells: CELLS, place: int) -> None:
    """Draw the cells of one load, logs from top to bottom."""
    for row, rules in enumerate(cells.values()):
        values = [rules[rule][place] for rule in RULES]
        axis.plot([min(values), max(values)], [row, row], color="0.85", lw=1.2, zorder=1)
    for order, (rule, (label, colour, marker)) in enumerate(RULES.items()):
        values = [rules[rule][place] for rules in cells.values()]
        axis.scatter(values, range(len(cells)), s=34, color=colour, marker=marker, label=label, zorder=9 - order)
    axis.set(title=f"load {LOADS[place]}", xlim=(14, 102), ylim=(len(cells) - 0.5, -0.5))
    axis.set_yticks(range(len(cells)), list(cells))
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="0.92")


def main() -> None:
    """Draw a panel for each load."""
    plt.rcParams.update(figure_style())
    cells = cells_of(ROOT / "docs/measured/schedulers.csv")
    fig, axes = plt.subplots(1, len(LOADS), figsize=(10.4, 5.0), sharey=True, layout="constrained")
    for place, axis in enumerate(axes):
        panel(axis, cells, place)
    axes[1].set_xlabel("value delivered, % of the bound on the best schedule")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    fig.savefig(ROOT / "examples/figures/schedulers.png", dpi=130)


if __name__ == "__main__":
    main()
