"""A cluster of several kinds of nodes in a YAML file, with the jobs that sacct lists: which mechanism earns most."""

import sys

import matplotlib.pyplot as plt

from marketsched import compare, figure_style, run

RULES = {
    "cluster-queue:order=density": "most value per share first, told the truth",
    "cluster-queue": "first in, first out, told the truth",
    "cluster-first-come": "menus at price 0",
    "cluster-bid-price": "menus at bid prices",
}

scenario = (sys.argv[1:] or ["examples/gpu-cluster/cluster.yaml"])[0]
found = compare(scenario, list(RULES), runs=5)
rows = {row["mechanism"]: row for row in found.records()}
print("welfare, per cent of the bound; difference to menus at price 0, points; jobs done, per cent")
for rule, label in RULES.items():
    row = rows[rule]
    low, high = 100 * row["over_first_come_low"], 100 * row["over_first_come_high"]
    difference = f"{(low + high) / 2:+5.1f} +- {(high - low) / 2:.1f}" if rule != "cluster-first-come" else ""
    share, done = 100 * row["welfare_share"], 100 * row["completed_share"]
    print(f"{label:44} {share:5.1f}   {difference:12}   {done:5.1f}")

market = run(scenario, mechanism="cluster-bid-price")
pools = market.tables["pools"]
pools = pools[(pools["resource"] == "gpu") | (pools["pool"] == "cpu") & (pools["resource"] == "cpu")]

plt.rcParams.update(figure_style())
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
left.barh(list(RULES.values()), [100 * rows[rule]["welfare_share"] for rule in RULES], color="#56b4e9")
left.set_xlabel("welfare, % of the bound")
left.invert_yaxis()
for (pool, _), part in pools.groupby(["pool", "resource"], sort=False):
    if part["size"].iloc[0]:
        right.plot(part["round"] / 2, 100 * part["used"] / part["size"], label=pool)  # a round is half an hour
right.set(xlabel="hours", ylabel="% in use", ylim=(0, 102))
right.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
figure.savefig("figure.png", dpi=110)
