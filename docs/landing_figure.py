"""The figure of the landing page, two panels that a telephone can show: a market and a log, tables of docs/measured/.

python docs/landing_figure.py    # writes examples/figures/landing.png
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from marketsched import figure_style

ROOT = Path(__file__).resolve().parent.parent
Lines = dict[str, tuple[str, tuple[float, float], str, str, str | None]]
PANELS: tuple[
    tuple[str, str, str, Lines], ...
] = (  # CSV file, its market or all rows, title; by column: label, its place, colour, line, marker
    (
        "mechanisms",
        "synthetic-pipelines",
        "a day of pipelines, durations shown",
        {
            "bid-price": ("bid prices", (1.5, 97), "C0", "-", "o"),
            "posted-price": ("posted prices,\npromised at birth", (1.55, 56), "C2", "-", "D"),
            "first come at price 0": ("first come,\nfirst served", (0.72, 36), "0.35", ":", None),
        },
    ),
    (
        "schedulers-hpc2n",
        "",
        "a log of a real cluster, durations hidden",
        {
            "two-offers": ("two offers", (1.08, 73), "C0", "-", "o"),
            "fair-turns": ("fair turns", (1.02, 95), "C2", "-", "D"),
            "easy-backfill": ("EASY\nbackfilling", (0.72, 49), "0.35", ":", None),
        },
    ),
)


def table_of(name: str, market: str) -> dict[str, list[tuple[float, float]]]:
    """Return means and half widths by column, per cent of the bound, of a CSV file of docs/measured/."""
    table = pd.read_csv(ROOT / f"docs/measured/{name}.csv", dtype=str)
    if market:
        table = table[table["market"] == market].drop(columns="market")
    found = {"load": [(float(load), 0.0) for load in table.pop("load")]}
    for column in table:
        cells = (re.findall(r"[-+]?[\d.]+", cell) for cell in table[column])
        found[str(column)] = [(float(mean), float(half)) for mean, half in cells]
    return found


def panel(axis: Any, name: str, market: str, title: str, lines: Lines) -> None:
    """Draw one table."""
    table = table_of(name, market)
    loads = [load for load, _ in table["load"]]
    for column, (label, place, colour, line, marker) in lines.items():
        means, halves = zip(*table[column], strict=True)
        axis.errorbar(loads, means, halves, color=colour, ls=line, marker=marker, ms=5, lw=2.2, capsize=2)
        axis.text(*place, label, color=colour, fontsize=12)
    ticks = [load for load in (0.5, 0.7, 1, 1.5, 2, 3) if load in loads]
    axis.set(xscale="log", xticks=ticks, xticklabels=[f"{load:g}" for load in ticks], ylim=(0, 105))
    axis.minorticks_off()
    axis.grid(axis="y", color="0.9")
    axis.set_title(title, fontsize=12)
    axis.set_ylabel("value delivered, % of the bound", fontsize=11)


def main() -> None:
    """Draw the panels."""
    plt.rcParams.update(figure_style())
    fig, axes = plt.subplots(2, figsize=(5.2, 6.8), layout="constrained")
    for axis, (name, market, title, lines) in zip(axes, PANELS, strict=True):
        panel(axis, name, market, title, lines)
    axes[-1].set_xlabel("load: work asked for, over what the nodes can do", fontsize=11)
    fig.savefig(ROOT / "examples/figures/landing.png", dpi=130)


if __name__ == "__main__":
    main()
