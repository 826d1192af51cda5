"""Which mechanism earns most at which load: welfare over the dual bound, one panel for each comparison."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from marketsched import compare, figure_style, load
from marketsched.results.result import Result

MARKET = "stochastic-mix"
MECHANISMS = ("bid-price", "bid-price:forecast=laws", "posted-price")
LOADS = (0.5, 0.8, 1.0, 1.25, 1.6, 2.0, 3.0)
LINES = {  # name: label, colour, line, marker
    "bid-price": ("bid-price, from its own past", "#0072B2", "-", "o"),
    "bid-price:forecast=laws": ("bid-price, from known laws", "#56B4E9", "-", "s"),
    "posted-price": ("posted-price, the paper's", "#009E73", "-", "D"),
    "first_come": ("first come at price 0", "0.35", ":", None),
    "best_flat": ("first come at the best flat price in hindsight", "0.35", "--", None),
}


def lines_of(summary: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return load, share and its interval for every line of a panel, in per cent of the bound."""
    found = {}
    for name in LINES:
        rows = summary.drop_duplicates("load") if "_" in name else summary[summary["mechanism"] == name]
        prefix = f"{name}_share" if "_" in name else "share"
        if len(rows):
            columns = {"load": rows["load"]}
            columns |= {f"share{end}": 100 * rows[prefix + end] for end in ("", "_low", "_high")}
            found[name] = pd.DataFrame(columns)
    return found


def title_of(found: Result) -> str:
    """Return the name of the market, and whether its durations are hidden."""
    hidden = "over_best_flat_known" in found.summary and found.summary["over_best_flat_known"].notna().any()
    return f"{found.meta['scenario']}{', durations hidden' if hidden else ''}"


def print_table(name: str, summary: pd.DataFrame) -> None:
    """Print what each line earns at each load, in per cent of the bound."""
    lines = lines_of(summary)
    loads = sorted(summary["load"].unique())
    title = f"{name}, {summary['runs'].max()} seeds"
    print(f"{title:48}" + "".join(f"{f'load {x:g}':>16}" for x in loads))
    for line, rows in lines.items():
        cells = ((row.share, row.share_high - row.share) for row in rows.itertuples(index=False))
        print(f"  {LINES[line][0]:46}" + "".join(f"{mean:8.1f} +- {half:4.1f}" for mean, half in cells))


def draw(panels: dict[str, pd.DataFrame], path: Path) -> None:
    """Draw one panel for each comparison."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    plt.rcParams.update(figure_style())
    fig, axes = plt.subplots(rows, columns, figsize=(9.6, 0.9 + 2.7 * rows), layout="constrained", squeeze=False)
    for axis, (name, summary) in zip(axes.flat, panels.items(), strict=False):
        for line, table in lines_of(summary).items():
            label, colour, style, marker = LINES[line]
            half = [table["share"] - table["share_low"], table["share_high"] - table["share"]] if marker else None
            axis.errorbar(
                table["load"], table["share"], half, label=label, color=colour, ls=style, marker=marker, ms=4, capsize=2
            )
        axis.set_title(name, fontsize=10, loc="left")
        axis.grid(axis="y", color="0.9")
        axis.set(ylim=(0, 103), xscale="log", xticks=[0.5, 1, 2, 3], xticklabels=["0.5", "1", "2", "3"])
        axis.minorticks_off()
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_axis_off()
    handles = max((axis.get_legend_handles_labels() for axis in axes.flat), key=lambda pair: len(pair[0]))
    fig.legend(*handles, loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    fig.supxlabel("load: work asked for, over what the nodes can do", fontsize=10)
    fig.supylabel("welfare, % of the bound", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=110)


def main() -> None:
    """Compare mechanisms by load, or take comparisons that are there; print tables and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folders", nargs="*", help="results of `marketsched compare NAME --loads ...` (default: one is made)"
    )
    parser.add_argument("--seeds", type=int, default=5, help="runs for each load, at least 2 (5)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/which-mechanism.png"))
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: expected at least 2, an interval needs two runs")
    found: list[Result] = [load(folder) for folder in options.folders] or [
        compare(MARKET, MECHANISMS, runs=options.seeds, seed=300, loads=LOADS)
    ]
    panels = {title_of(each): each.summary for each in found}
    for name, summary in panels.items():
        print_table(name, summary)
    draw(panels, options.out)


if __name__ == "__main__":
    main()
