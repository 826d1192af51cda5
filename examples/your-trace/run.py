"""A log of your own as a workload: its last day becomes a market, each run predicted from earlier ones."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from marketsched import Scenario, run
from marketsched.mechanisms import register
from marketsched.worlds import PredictionRule, Workload
from marketsched.worlds.workload import LOG_COLUMNS


def made_up_log() -> pd.DataFrame:
    """Return five days of thirty recurring jobs, as a reader of logs would."""
    rng, rows = np.random.default_rng(7), []
    for user in range(1, 31):
        period, median, nodes = rng.choice([1800, 3600, 7200]), rng.uniform(300, 4000), int(rng.integers(1, 4))
        for due in np.arange(rng.uniform(0, period), 5 * 86_400, period):
            seconds = (int(due + abs(rng.normal(0, 0.1 * period))), int(median * rng.lognormal(0, 0.3)))
            rows.append((*seconds, nodes, user, 1))
    return pd.DataFrame(rows, columns=LOG_COLUMNS)


@register("workload", "my-log")
def my_log(rng: np.random.Generator, log: str = "", days: float = 1.0, load: float = 1.2) -> Workload:
    """Return the market of the last ``days`` of a log, a CSV file with LOG_COLUMNS."""
    table = pd.read_csv(log) if log else made_up_log()
    return Workload.from_log(table, rng=rng, days=days, load=load, rule=PredictionRule(max_duration=24))


prices = {"name": "exponential", "epsilon": 0.05, "threshold": 0.05, "oracle": {"kind": "monte-carlo", "refresh": 0.1}}
workload = {"kind": "my-log", "log": "".join(sys.argv[1:2])}
scenario = Scenario.from_dict({"name": "my log", "workload": workload, "mechanism": prices})
results = [run(scenario, seed) for seed in range(5)]
print(f"market: {results[0].summary['jobs']} predicted runs on {results[0].summary['capacity']} nodes")
for words, key in {"posted prices": "share_of_best", "first come, first served": "first_come_share"}.items():
    shares = np.array([100 * each.summary[key] for each in results])
    print(f"{words}: {shares.mean():.1f} +- {2.776 * shares.std(ddof=1) / 5**0.5:.1f} % of the bound on any schedule")
plt.step(results[0].rounds["round"], results[0].rounds["load"])
plt.savefig("figure.png")
