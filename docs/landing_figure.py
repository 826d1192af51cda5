"""The figure of the landing page: one table of docs/which-mechanism.md as one panel that a telephone can show.

python docs/landing_figure.py    # writes examples/figures/landing.png
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt

from marketsched import figure_style

ROOT = Path(__file__).resolve().parent.parent
MARKET = "synthetic-pipelines"
LINES = {  # column of the table: label, where it stands, colour, line, marker
    "`bid-price`": ("bid prices", (1.5, 97), "C0", "-", "o"),
    "`posted-price`": ("posted prices,\npromised at birth", (1.55, 56), "C2", "-", "D"),
    "first come at 0": ("first come,\nfirst served", (0.72, 36), "0.35", ":", None),
}


def table_of(page: str, market: str) -> dict[str, list[tuple[float, float]]]:
    """Return means and half widths by column, per cent of the bound, of one market's table on the page."""
    block = page.split(f"**{market}**")[1].split("\n\n")[1]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
    found: dict[str, list[tuple[float, float]]] = {"load": [(float(row[0]), 0.0) for row in rows]}
    for place, name in enumerate(head[1:], 1):
        cells = (re.findall(r"[-+]?[\d.]+", row[place]) for row in rows)
        found[name] = [(float(mean), float(half)) for mean, half in cells]
    return found


def main() -> None:
    """Draw the panel."""
    table = table_of((ROOT / "docs/which-mechanism.md").read_text(), MARKET)
    loads = [load for load, _ in table["load"]]
    plt.rcParams.update(figure_style())
    fig, axis = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    for name, (label, place, colour, line, marker) in LINES.items():
        means, halves = zip(*table[name], strict=True)
        axis.errorbar(loads, means, halves, color=colour, ls=line, marker=marker, ms=5, lw=2.2, capsize=2)
        axis.text(*place, label, color=colour, fontsize=12)
    axis.set(xscale="log", xticks=[0.5, 1, 2, 3], xticklabels=["0.5", "1", "2", "3"], ylim=(0, 105))
    axis.minorticks_off()
    axis.grid(axis="y", color="0.9")
    axis.set_xlabel("load: work asked for, over what the nodes can do", fontsize=11)
    axis.set_ylabel("value delivered, % of the bound", fontsize=11)
    fig.savefig(ROOT / "examples/figures/landing.png", dpi=130)


if __name__ == "__main__":
    main()
