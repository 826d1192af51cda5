"""Where the time of `marketsched run synthetic-pipelines` goes: sampled, one bar for each version and cache, drawn.

    python benchmarks/profiles.py --out docs/profile.png --before /path/to/another/checkout

Each bar is the median of ``--repeats`` processes, half of which find no compiled kernels. A sample is taken after every
two milliseconds of the process's processor time, counts with the time since the last one, and belongs to the first of:
the library whose import is going on; compiling, if numba has a frame on the stack; else the room of marketsched whose
frame is innermost. Another checkout needs its links (`make links`); it runs with this environment. Beside the figure go
the numbers, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

EVERY = 0.002  # processor seconds between two samples
RUN = ("run", "synthetic-pipelines", "--seed", "0", "--force", "--out")
SEPARATE = (
    "mesa",
    "numba",
    "llvmlite",
    "pandas",
    "matplotlib",
    "scipy",
    "numpy",
)  # of the imports; the rest is one part
PARTS = {  # part of a bar: the samples that make it
    "import Mesa": ("import mesa",),
    "import numba": ("import numba", "import llvmlite"),
    "import matplotlib": ("import matplotlib",),
    "import pandas": ("import pandas",),
    "import numpy, scipy": ("import numpy", "import scipy"),
    "import others": ("import others",),
    "compile, load kernels": ("compile",),
    "workload": ("worlds",),
    "market": ("agents", "mechanisms", "play"),
    "bounds": ("relaxed_lp",),
    "tables, figure": ("results", "show", "study"),
    "rest": ("config", "rest", "truthfulness"),
}
COLOURS = (
    "#084594",
    "#2171b5",
    "#4292c6",
    "#6baed6",
    "#9ecae1",
    "#c6dbef",
    "#d55e00",
    "#cc79a7",
    "#e69f00",
    "#807dba",
    "#f0e442",
    "#bdbdbd",
)


def sampled(tree: str, out: str) -> None:
    """Run the command in this process, of the package in ``tree``; write seconds by place into ``out``."""
    sys.path.insert(0, str(Path(tree) / "build" / "src"))
    found: defaultdict[str, float] = defaultdict(float)
    last = [time.process_time()]

    def sample(_: int, frame: FrameType | None) -> None:
        now = time.process_time()
        found[_place(frame)] += now - last[0]
        last[0] = now

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["marketsched", *RUN, str(Path(folder) / "run")]
        status: Any = 0
        try:
            from marketsched.__main__ import main

            main()
        except SystemExit as end:
            status = end.code
        signal.setitimer(signal.ITIMER_PROF, 0)
    if status not in (0, None):
        raise SystemExit(status)
    found["rest"] += time.process_time() - sum(found.values())
    Path(out).write_text(json.dumps(found))


def _place(frame: FrameType | None) -> str:
    """Return what a sample belongs to."""
    room = library = ""
    compiling = False
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        compiling = compiling or module.startswith(("numba.core", "llvmlite.binding"))
        if not room and module.startswith("marketsched."):
            room = module.split(".")[1]
        if module == "importlib._bootstrap" and frame.f_code.co_name == "_find_and_load":
            name = str(frame.f_locals.get("name", "")).split(".")[0]
            library = library if name == "marketsched" else name  # in the end the outermost library
        frame = frame.f_back
    if library:
        return f"import {library if library in SEPARATE else 'others'}"
    return "compile" if compiling else room or "rest"


def profile(tree: Path, cache: Path) -> dict[str, float]:
    """Return seconds by part of one process."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        call = [sys.executable, __file__, "--sample", str(tree), out.name]
        subprocess.run(call, check=True, env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}, capture_output=True)
        found = json.loads(Path(out.name).read_text())
    parts = {part: sum(found.pop(name, 0.0) for name in names) for part, names in PARTS.items()}
    parts["rest"] += sum(found.values())
    return parts


def measured(trees: dict[str, Path], repeats: int) -> dict[str, dict[str, float]]:
    """Return the median of each part by bar: versions in turn, first runs and later ones."""
    bars: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeats):
        for name, tree in trees.items():
            with tempfile.TemporaryDirectory() as cache:
                for kind in ("first run", "later run"):
                    bars.setdefault(f"{kind}, {name}", []).append(profile(tree, Path(cache)))
                    print(f"{kind}, {name}: {sum(bars[f'{kind}, {name}'][-1].values()):.2f} s", file=sys.stderr)
    return {bar: {part: statistics.median(x[part] for x in found) for part in PARTS} for bar, found in bars.items()}


def draw(bars: dict[str, dict[str, float]], out: Path) -> None:
    """Draw a panel of first runs and one of later runs, bars from the left."""
    import matplotlib
    from matplotlib.figure import Figure

    from marketsched.results.panels import STYLE, save_figure

    with matplotlib.rc_context(STYLE | {"font.size": 10}):
        figure = Figure(figsize=(11, 4.6), facecolor="white")
        panels = figure.subplots(2, 1)
        figure.subplots_adjust(left=0.06, right=0.985, top=0.78, bottom=0.11, hspace=0.5)
        for axes, kind in zip(panels, ("first run", "later run"), strict=True):
            names = [name for name in bars if name.startswith(kind)][::-1]
            left = dict.fromkeys(names, 0.0)
            for part, colour in zip(PARTS, COLOURS, strict=True):
                widths = [bars[name][part] for name in names]
                axes.barh(
                    [name.partition(", ")[2] for name in names],
                    widths,
                    left=list(left.values()),
                    color=colour,
                    label=part,
                )
                left = {name: left[name] + width for name, width in zip(names, widths, strict=True)}
            for row, total in enumerate(left.values()):
                axes.text(total, row, f" {total:.1f}", va="center")
            axes.set_title(kind, loc="left", fontsize=10)
            axes.set_xlim(0, 1.06 * max(left.values()))
        panels[1].set_xlabel("processor seconds")
        figure.legend(*panels[0].get_legend_handles_labels(), ncols=6, frameon=False, loc="upper center", fontsize=9)
    save_figure(figure, out, dpi=80)


def main() -> None:
    """Measure, write the numbers, draw."""
    parser = argparse.ArgumentParser(description="Measure and draw where the time of a run goes.")
    parser.add_argument("--out", type=Path, default=Path("build/profile.png"), help="figure (default: %(default)s)")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="a checkout of another version to compare with")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each bar (default: %(default)s)")
    parser.add_argument("--draw", type=Path, metavar="JSON", help="draw numbers that were measured before")
    parser.add_argument("--sample", nargs=2, metavar=("FOLDER", "JSON"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.sample:
        return sampled(*chosen.sample)
    here = Path(__file__).resolve().parent.parent
    trees = {**({"before": chosen.before.resolve()} if chosen.before else {}), "now": here}
    bars = json.loads(chosen.draw.read_text()) if chosen.draw else measured(trees, chosen.repeats)
    from harness import write_json

    write_json(bars, chosen.out.with_suffix(".json"))
    draw(bars, chosen.out)


if __name__ == "__main__":
    main()
