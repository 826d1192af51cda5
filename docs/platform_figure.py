"""The picture of the platform in the README, for a light page and a dark one.

python docs/platform_figure.py    # writes examples/figures/platform-light.png and platform-dark.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from marketsched import figure_style

FOLDER = Path(__file__).resolve().parent.parent / "examples/figures"


class Look(NamedTuple):
    """Colours of one page."""

    page: str
    ink: str
    muted: str
    arrow: str


class Box(NamedTuple):
    """A part: its corner and size in inches, its colour, headline and lines."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    head: str
    lines: tuple[str, ...]


LOOKS = {
    "light": Look("#ffffff", "#1b1b1b", "#555555", "#6b6b6b"),
    "dark": Look("#0d1117", "#f0f3f6", "#b3bac2", "#9aa2ab"),
}
BLUE, GREEN, ORANGE, PINK = "#0072b2", "#009e73", "#e69f00", "#cc79a7"
OWNERS = Box(0.1, 1.55, 2.0, 1.5, BLUE, "owners", ("Mesa agents: truthful,", "lying, or learning", "which report pays"))
MARKET = Box(
    3.35,
    2.55,
    2.75,
    1.5,
    GREEN,
    "market of jobs",
    ("bid prices, posted prices,", "auctions, two offers,", "EASY, fair share"),
)
CORES = Box(
    3.35,
    0.55,
    2.75,
    1.5,
    GREEN,
    "allocation cores",
    ("OgaSched, ESDP, OPM:", "slot by slot, learning", "from what comes out"),
)
BOUNDS = Box(
    7.3, 2.55, 2.3, 1.5, ORANGE, "bounds", ("linear programs by cvxpy", "and duals: how far", "from the best?")
)
AUDIT = Box(
    7.3, 0.55, 2.3, 1.5, PINK, "audit", ("would another report", "have paid? a lie that pays,", "or a certificate")
)
# From, to, bend, words, their place.
ARROWS = (
    ((2.1, 2.6), (3.35, 3.25), 0.0, "reports", (2.62, 3.12)),
    ((2.1, 2.0), (3.35, 1.35), 0.0, "requests", (2.55, 1.38)),
    ((6.1, 3.3), (7.3, 3.3), 0.0, "schedules", (6.7, 3.42)),
    ((6.1, 1.3), (7.3, 1.3), 0.0, "utilities", (6.7, 1.42)),
    ((6.1, 2.8), (7.3, 1.8), 0.0, "", (0, 0)),
    ((6.1, 1.8), (7.3, 2.8), 0.0, "", (0, 0)),
    ((7.9, 0.55), (1.1, 1.55), -0.27, "the same owner again, with a lie", (5.2, -0.29)),
)


def draw(look: Look) -> Figure:
    """Return the picture."""
    figure = Figure(figsize=(9.7, 4.6), facecolor=look.page)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, 9.7), ylim=(-0.4, 4.2))
    axis.axis("off")
    for box in (OWNERS, MARKET, CORES, BOUNDS, AUDIT):
        _box(axis, box, look)
    for begin, end, bend, words, place in ARROWS:
        style = f"arc3,rad={bend}"
        arrow = FancyArrowPatch(
            begin, end, connectionstyle=style, arrowstyle="-|>", mutation_scale=14, color=look.arrow, linewidth=1.6
        )
        axis.add_patch(arrow)
        axis.text(*place, words, ha="center", fontsize=10.5, color=look.muted)
    axis.text(4.72, 2.3, "kernels compiled by numba", ha="center", va="center", fontsize=10.5, color=look.muted)
    return figure


def _box(axis: Any, box: Box, look: Look) -> None:
    axis.add_patch(
        FancyBboxPatch(
            (box.x, box.y),
            box.width,
            box.height,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=(*matplotlib.colors.to_rgb(box.colour), 0.13),
            edgecolor=box.colour,
            linewidth=1.8,
        )
    )
    middle, top = box.x + box.width / 2, box.y + box.height
    axis.text(middle, top - 0.3, box.head, ha="center", va="center", fontsize=13.5, fontweight="bold", color=look.ink)
    for place, line in enumerate(box.lines):
        axis.text(middle, top - 0.63 - 0.28 * place, line, ha="center", va="center", fontsize=11, color=look.ink)


def main() -> None:
    """Draw both."""
    with matplotlib.rc_context(figure_style()):
        for name, look in LOOKS.items():
            draw(look).savefig(
                FOLDER / f"platform-{name}.png", dpi=130, facecolor=look.page, metadata={"Software": None}
            )


if __name__ == "__main__":
    main()
