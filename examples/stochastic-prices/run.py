"""Prices that rise with the load against bundle prices made from the laws, on the same draws of known mixtures."""

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from marketsched import Comparison, Scenario, compare, figure_style

MECHANISMS = ["exponential", "stochastic", "stochastic:pricing.price_end=high", "first-come"]
SHORT = {MECHANISMS[2]: "stochastic, high end"}


def market(whole: bool) -> Scenario:
    """Return the built-in market of mixtures, or the first half of its day: the linear program is what takes time."""
    scenario = Scenario.load("stochastic-mix").to_dict()
    if not whole:
        scenario["name"] = "stochastic-mix, half a day"
        scenario["workload"]["horizon"] = 60
        for job in scenario["workload"]["jobs"]:
            job["copies"] //= 2
            if job["name"] == "month-end":
                _move(job, -12)
    return Scenario.from_dict(scenario)


def _move(job: dict[str, Any], rounds: int) -> None:
    """Move all times of an entry."""
    job["birth"] += rounds
    for statement in job["statements"]:
        statement["value"]["deadline"] += rounds
        for case in statement["requirements"]:
            case["arrival"] += rounds


def show(found: Comparison) -> None:
    """Print what each mechanism earns, how far that can be from the best, and what is promised."""
    print(f"{found.meta['scenario']}, {found.meta['runs']} paired runs, 95 % intervals")
    for each in found.records():
        name = SHORT.get(each["mechanism"], each["mechanism"])
        print(
            f"{name:21} welfare {each['welfare']:6.0f}, behind the best one {100 * each['behind']:4.1f} % "
            f"({100 * each['behind_low']:.1f} to {100 * each['behind_high']:.1f})  revenue {each['revenue']:5.0f}  "
            f"E[OPT] / E[welfare] {each['interval_low']:.2f} to {each['interval_high']:.2f}"
        )
    for each in found.records():
        if each["mechanism"] in MECHANISMS[:2]:
            condition = each["promise_conditions"].split(";")[0]
            print(f"{each['mechanism']}: promised ratio {each['promised_ratio']:.1f}; but: {condition}")


def draw(found: Comparison, path: Path) -> None:
    """Draw welfare and revenue as shares of the bound on the best schedule."""
    plt.rcParams.update(figure_style())
    fig, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
    rows = found.records()[::-1]
    names = [SHORT.get(each["mechanism"], each["mechanism"]) for each in rows]
    for shift, share, words in ((0.2, "welfare_share", "welfare"), (-0.2, "revenue_share", "revenue")):
        heights = [100 * each[share] for each in rows]
        axis.barh([i + shift for i in range(len(rows))], heights, height=0.38, label=words)
    axis.set_yticks(range(len(rows)), names)
    axis.set(xlabel="% of the bound on the best schedule in hindsight", xlim=(0, 100))
    fig.legend(loc="outside upper right", ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=100)


def main() -> None:
    """Compare, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8, help="paired runs, at least 2 (8)")
    parser.add_argument("--whole", action="store_true", help="the whole day of the scenario")
    parser.add_argument("--out", type=Path, default=Path("build/examples/stochastic-prices.png"))
    options = parser.parse_args()
    if options.runs < 2:
        parser.error(f"--runs {options.runs}: expected at least 2, an interval needs two runs")
    found = compare(market(options.whole), MECHANISMS, runs=options.runs, optimum_seconds=0)
    show(found)
    draw(found, options.out)


if __name__ == "__main__":
    main()
