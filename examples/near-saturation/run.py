"""What last-in-first-out eviction does to a cluster as it fills up, and whom it removes."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t

from marketsched import Scenario, figure_style, run

LOADS = (0.7, 0.85, 1.0, 1.2)  # expected work over what the nodes can do
RULES = {"all": "all active jobs (the paper)", "running": "jobs that run"}


def made_up(load: float, rule: str) -> Scenario:
    """Return a made-up day in which durations are hidden and the mechanism overbooks by 30 %."""
    scenario = Scenario.load("synthetic-pipelines").to_dict()
    scenario["workload"] |= {"recurring_jobs": 100, "birth_rounds": 96, "durations": "hidden", "utilisation": load}
    scenario["mechanism"] |= {"epsilon": -0.3, "eviction": rule}
    return Scenario.from_dict(scenario)


def interval(values: list[float]) -> tuple[float, float]:
    """Return mean and half-width of the 95 % interval of Student, in per cent."""
    x = 100 * np.array(values)
    return float(x.mean()), float(t.ppf(0.975, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size))


def measure(scenario: Scenario, seeds: int) -> dict[str, tuple[float, float]]:
    """Return the shares of jobs removed before and after they began, and welfare over its bound."""
    runs = [run(scenario, seed).outcome for seed in range(seeds)]
    return {
        "cancelled": interval([each["cancelled"] / each["jobs"] for each in runs]),
        "evicted": interval([each["evicted"] / each["jobs"] for each in runs]),
        "welfare": interval([each["share_of_best"] for each in runs]),
    }


def draw(found: dict[str, dict[float, dict[str, tuple[float, float]]]], path: Path) -> None:
    """Draw what is removed, and what is left of the best welfare, against the load."""
    plt.rcParams.update(figure_style())
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    titles = {"cancelled": "cancelled before they began, % of jobs", "welfare": "welfare, % of the bound"}
    for axis, (what, title) in zip(axes, titles.items(), strict=True):
        for (rule, words), marker in zip(RULES.items(), "os", strict=True):
            means, halves = zip(*(each[what] for each in found[rule].values()), strict=True)
            axis.errorbar(list(found[rule]), means, halves, marker=marker, capsize=3, label=f"LIFO over {words}")
        axis.set(xlabel="expected work / what the nodes can do", title=title)
        axis.set_ylim(bottom=0)
    axes[0].legend(loc="center left", fontsize=9, bbox_to_anchor=(0.0, 0.8))
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=100)


def main() -> None:
    """Run all loads under both rules; print a table and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="runs for each load and rule, at least 2 (8)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/near-saturation.png"))
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: expected at least 2, an interval needs two runs")
    found = {rule: {x: measure(made_up(x, rule), options.seeds) for x in LOADS} for rule in RULES}
    print(f"mean +- 95 % interval, {options.seeds} seeds    load    cancelled %      evicted %      welfare %")
    for rule, words in RULES.items():
        for load, row in found[rule].items():
            figures = "".join(f"{mean:8.1f} +- {half:3.1f}" for mean, half in row.values())
            print(f"LIFO over {words:29} {load:4.2f} {figures}")
    draw(found, options.out)


if __name__ == "__main__":
    main()
