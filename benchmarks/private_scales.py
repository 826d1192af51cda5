"""Values on private scales: what becomes of owners where each names its values in a unit of its own.

    python benchmarks/private_scales.py --out scales.csv --seeds 960 961

Every owner multiplies all its values by a factor of its own, log-normal of deviation 1.5, as it may where credits are
worth nothing to it. Figures are those of `owners_table`, by the true values, under the truth and under private scales.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from logs_table import bound_of
from marketsched.agents.job import Job
from marketsched.mechanisms import DeadlineValue
from marketsched.results.paired_statistics import spread
from marketsched.worlds.workload import Workload
from owners_table import FIGURES, figures_of, market_at

DEVIATION = 1.5
CELLS = [(name, load) for name in ("hpc2n", "nasa", "lublin") for load in (1.0, 1.5)]
MECHANISMS = ("credits", "fair-turns", "two-offers", "bid-price", "largest-value-first")


def on_private_scales(workload: Workload, seed: int) -> Workload:
    """Return the market as owners report it: each in a unit of its own."""
    rng = np.random.default_rng([seed, 5])
    factors = {owner: float(np.exp(rng.normal(0.0, DEVIATION))) for owner in workload.owners}
    jobs = [scaled(job, factors[job.owner]) for job in workload.jobs]
    highest = max(job.truth.value.highest for job in jobs)
    return replace(workload, jobs=tuple(jobs), max_value=highest)


def scaled(job: Job, factor: float) -> Job:
    """Return a job with its value in another unit."""
    value = job.truth.value
    curve = DeadlineValue(factor * value.highest, value.last)
    return replace(job, truth=job.truth.moved(job.truth.birth, curve))


def main() -> None:
    """Play, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[960, 961, 962, 963])
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in arguments.seeds:
        for name, load in CELLS:
            workload = market_at(name, load, seed, 0)
            bound, told = bound_of(workload), on_private_scales(workload, seed)
            for label in MECHANISMS:
                for scale, reported in (("true", None), ("private", told)):
                    found = figures_of(label, workload, bound, reported)
                    cell = {"log": name, "load": load, "seed": seed, "mechanism": label, "scales": scale}
                    rows.append(cell | {figure: found[figure] for figure in FIGURES})
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    table = pd.DataFrame(rows)
    for key, part in table.groupby(["mechanism", "scales"]):
        label, scale = cast("tuple[str, str]", key)
        over_seeds = [spread(part.groupby("seed")[each].mean().to_numpy(), 0.95) for each in FIGURES]
        words = [f"{name} {x.mean:.1f} ± {x.high - x.mean:.1f}" for name, x in zip(FIGURES, over_seeds, strict=True)]
        print(f"{label}, {scale} scales: {', '.join(words)}")


if __name__ == "__main__":
    main()
