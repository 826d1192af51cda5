"""What an owner gains by a false bid in Armada's market-driven pools, and what the repairs cost."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from marketsched import audit, compare, figure_style

RULES = {  # what they are called here
    "armada:version=2024": "Armada 2024",
    "armada:version=2026": "Armada 2026",
    "spot": "highest losing bid",
    "vcg": "VCG each round",
    "posted-price": "posted prices",
}
VALUES = (10, 7, 4, 2)  # credits, of one round on one node


def four_owners() -> dict:
    """Return a market of four owners and three nodes, for one round."""
    jobs = [
        {
            "name": f"worth {value}",
            "owner": f"owner of {value}",
            "birth": 1,
            "concurrency": 1,
            "value": {"kind": "deadline", "value": value, "deadline": 2},
            "requirements": [{"arrival": 1, "duration": 1, "probability": 1}],
        }
        for value in VALUES
    ]
    sizes = {"capacity": 3, "horizon": 3, "max_concurrency": 1, "max_duration": 1, "max_value": 10, "max_delay": 3}
    return {"name": "four owners", "workload": {"kind": "jobs", **sizes, "jobs": jobs}}


def lies(plays: int) -> pd.DataFrame:
    """Audit all rules in the small market; print the best lie."""
    prices = {"mechanism": {"pricing": {"kind": "posted", "prices": [3.0]}}}
    table = audit({**four_owners(), **prices}, list(RULES), plays=plays).summary.set_index("mechanism")
    print("four owners, three nodes, one round: what a false bid gains, credits")
    for rule, name in RULES.items():
        row = table.loc[rule]
        if not row["lie"]:
            print(f"{name}: no lie pays")
            continue
        print(f"{name}: {row['sentence']}")
    return table


def costs(runs: int) -> pd.DataFrame:
    """Compare welfare and revenue on days of recurring jobs, under true reports."""
    rules = ["posted-price:pricing.kind=exponential" if rule == "posted-price" else rule for rule in RULES]
    found = compare("synthetic-pipelines", rules, runs=runs, loads=[1.25], optimum_seconds=0).runs
    means = found.groupby("mechanism")[["welfare", "revenue"]].mean().loc[rules]
    means.index = list(RULES.values())
    print(f"\nrecurring jobs at load 1.25, all reports true, mean of {runs} days, of the welfare under Armada 2026, %")
    share = 100 * means / means.loc["Armada 2026", "welfare"]
    for name, row in share.iterrows():
        print(f"{name:20} welfare {row['welfare']:6.1f}   revenue {row['revenue']:6.1f}")
    return share


def main() -> None:
    """Print both tables and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plays", type=int, default=3000, help="plays of search for each rule, at least 100 (3000)")
    parser.add_argument("--runs", type=int, default=3, help="days that are compared (3)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/armada.png"))
    options = parser.parse_args()
    gains, share = lies(options.plays), costs(options.runs)
    plt.rcParams.update(figure_style())
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    names = list(RULES.values())
    left.barh(names, gains.loc[list(RULES), "regret_lower"], color="#d55e00")
    left.set_xlabel("largest gain from a false bid, credits")
    for rule, name in RULES.items():
        if not gains.loc[rule, "regret_lower"] > 0:
            left.text(0.02, name, "no lie pays", va="center")
    right.barh(names, share["welfare"], color="#56b4e9", label="welfare")
    right.barh(names, share["revenue"], height=0.4, color="#0072b2", label="revenue")
    right.set_xlabel("% of the welfare under Armada 2026")
    right.set_yticks([])
    right.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    left.invert_yaxis()
    right.invert_yaxis()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=110)


if __name__ == "__main__":
    main()
