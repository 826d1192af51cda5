"""A log of your own as a workload: its last day becomes a market, with values drawn by a named rule."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from marketsched import compare, figure_style


def made_up_log() -> str:  # five days of thirty users' jobs, as a CSV file
    rng, rows = np.random.default_rng(7), []
    for user in range(1, 31):
        due = np.arange(rng.uniform(0, 3600), 5 * 86_400, rng.choice([1800, 3600, 7200]))
        seconds = (rng.uniform(300, 4000) * rng.lognormal(0, 0.3, due.size)).astype(int)
        rows += [(int(a), s, rng.integers(1, 4), user) for a, s in zip(due, seconds, strict=True)]
    pd.DataFrame(rows, columns=["submit_s", "run_s", "processors", "user"]).to_csv("my-log.csv", index=False)
    return "my-log.csv"


workload = {"kind": "csv", "path": (sys.argv[1:] or [made_up_log()])[0], "days": 1}
found = compare({"name": "my log", "workload": workload}, ["bid-price", "first-come"], runs=5)
for row in found.records():
    print(f"{row['mechanism']}: {100 / row['interval_high']:.1f} to {100 / row['interval_low']:.1f} % of the best")
plt.rcParams.update(figure_style())
bars = found.summary.plot.bar(x="mechanism", y=["welfare", "revenue"], rot=0, figsize=(6.4, 3.4))
bars.set(xlabel="", ylabel="credits, mean of 5 draws of values")
bars.yaxis.set_major_formatter("{x:,.0f}")
bars.figure.savefig("figure.png", dpi=110, bbox_inches="tight")
