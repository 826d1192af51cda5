"""The same jobs through a real Slurm on this machine and through `easy-backfill`: who starts when."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from marketsched import figure_style
from marketsched.slurm import beside_slurm
from marketsched.worlds import LogRule, workload_of_log

jobs, counting, reserving = (*sys.argv[1:], *("30", "licenses", "head")[len(sys.argv) - 1 :])
rng = np.random.default_rng(1)
count = int(jobs)
run_s = rng.lognormal(7.3, 0.8, count).round()
log = {
    "submit_s": rng.exponential(400, count).cumsum().round(),
    "run_s": run_s,
    "requested_s": (run_s * rng.uniform(0.7, 3, count)).round(),  # some are killed at their limit
    "processors": rng.choice([1, 1, 2, 3, 4, 5, 6], count),
}
market = workload_of_log(pd.DataFrame(log), rng=1, days=30, load=1.2, rule=LogRule(round_seconds=600, law="requested"))
found = beside_slurm(market, counting=counting, reserving=reserving)

frame, waits = found.run.frame, found.waits()
print(f"{count} jobs, {market.capacity} nodes; killed at their limit: {(frame['state'] == 'TIMEOUT').sum()}")
for name in ("easy-backfill", "conservative-backfill"):
    print(f"{found.equal(name)} of {count} jobs start in the round in which {name} starts them")
print("rounds with a queue, and those in which Slurm decides like easy-backfill: {} {}".format(*found.decisions()))
print("mean wait, rounds:", ", ".join(f"{name} {wait:.2f}" for name, wait in waits.items()))
if found.run.late:
    print(f"this machine was too slow: {found.run.late} rounds were late", file=sys.stderr)

plt.rcParams.update(figure_style())
figure, axes = plt.subplots(figsize=(7, 3.5))
axes.plot(frame["easy-backfill"] - frame["arrival"], "o", mfc="none", ms=9, label="easy-backfill")
axes.plot(frame["conservative-backfill"] - frame["arrival"], "s", mfc="none", ms=6, label="conservative-backfill")
axes.plot(frame["start"] - frame["arrival"], "k.", label="Slurm 22.05")
axes.set(xlabel="job, in order of submission", ylabel="wait, rounds")
axes.legend()
figure.savefig("figure.png", dpi=110, bbox_inches="tight")
