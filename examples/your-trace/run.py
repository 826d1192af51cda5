"""From a log of your own to a market: read it, predict recurring jobs from their past runs, and run the last day."""

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import t

from marketsched import Scenario, run
from marketsched.config.strict_yaml import dump_yaml
from marketsched.mechanisms import MarketschedError
from marketsched.worlds import PredictionRule, predict
from marketsched.worlds.prediction import History
from marketsched.worlds.traces.swf import read_swf

DAY = 86_400.0
RULE = PredictionRule(round_seconds=300.0, lead_seconds=7200.0, max_duration=24)
COLUMNS = ["submit_s", "run_s", "processors", "user", "executable"]


def made_up_log(path: Path) -> Path:
    """Write five days of thirty recurring jobs in the Standard Workload Format: 18 numbers a line, -1: not known."""
    rng = np.random.default_rng(7)
    rows = []
    for user in range(1, 31):
        period, median, nodes = rng.choice([1800, 3600, 7200]), rng.uniform(300, 4000), int(rng.integers(1, 4))
        for due in np.arange(rng.uniform(0, period), 5 * DAY, period):
            submit, seconds = due + abs(rng.normal(0, 0.1 * period)), median * rng.lognormal(0, 0.3)
            rows.append((int(submit), int(seconds), nodes, user))
    rows.sort()
    lines = ["; Computer: made up", f"; MaxNodes: {sum(row[2] for row in rows)}"]
    for number, (submit, seconds, nodes, user) in enumerate(rows, start=1):
        lines.append(f"{number} {submit} 0 {seconds} {nodes} -1 -1 {nodes} -1 -1 1 {user} 1 1 1 1 -1 -1")
    path.write_text("\n".join(lines) + "\n")
    return path


def read_log(path: Path) -> pd.DataFrame:
    """Return the finished runs of an SWF log, or of a CSV file with the same five columns."""
    try:
        table = pd.read_csv(path) if path.suffix == ".csv" else read_swf(path)
    except (MarketschedError, OSError, ValueError) as error:
        raise SystemExit(str(error)) from None
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise SystemExit(f"{path}: no column {', '.join(missing)}: expected {', '.join(COLUMNS)}")
    return table.loc[(table["run_s"] > 0) & (table["processors"] > 0), COLUMNS].sort_values("submit_s")


def jobs_of(log: pd.DataFrame, origin: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the runs from ``origin`` on that can be predicted, as entries of a scenario file.

    A log says when jobs came and how long they ran, not what they were worth: worth and slack are drawn.
    """
    entries = []
    for (user, executable), runs in log.groupby(["user", "executable"]):
        submits, seconds = runs["submit_s"].tolist(), runs["run_s"].tolist()
        rounds = [RULE.rounds_of(each) for each in seconds]
        past = History(submits, [s + r for s, r in zip(submits, seconds, strict=True)], rounds)
        density, slack = float(rng.lognormal(1, 0.7)), int(rng.integers(2, 13))
        nodes = int(runs["processors"].median())
        for i, submit in enumerate(submits):
            told = predict(past, i, RULE, origin) if submit >= origin else None
            if told is None or told.birth < 1:
                continue
            points = zip(told.arrivals.tolist(), told.durations.tolist(), told.probabilities.tolist(), strict=True)
            entries.append(
                {
                    "name": f"{user}-{executable}-{i}",
                    "birth": told.birth,
                    "concurrency": nodes,
                    "value": {
                        "kind": "deadline",
                        "value": density * nodes * told.duration.mean,
                        "deadline": told.expected + told.duration.quantile(0.9) + slack,
                    },
                    "requirements": [{"arrival": a, "duration": d, "probability": p} for a, d, p in points],
                    "arrival": int((submit - origin) // RULE.round_seconds) + 1,
                    "duration": rounds[i],
                }
            )
    return sorted(entries, key=lambda entry: entry["birth"])


def scenario_of(log: pd.DataFrame, days: float, load: float, seed: int) -> Scenario:
    """Return the market of the last ``days`` of a log, on so many nodes that their work is ``load`` of the supply."""
    origin = float(log["submit_s"].max()) - days * DAY
    jobs = jobs_of(log, origin, np.random.default_rng(seed))
    if not jobs:
        raise SystemExit(f"no job of the last {days:g} days has {RULE.min_gaps + 1} earlier runs to predict it from")
    horizon = max(entry["value"]["deadline"] for entry in jobs) + RULE.max_duration
    widest = max(entry["concurrency"] for entry in jobs)
    work = sum(entry["concurrency"] * entry["duration"] for entry in jobs)
    workload = {
        "kind": "jobs",
        "capacity": max(2 * widest, round(work / (days * DAY / RULE.round_seconds) / load)),
        "horizon": horizon,
        "max_concurrency": widest,
        "max_duration": RULE.max_duration,
        "max_value": max(entry["value"]["value"] for entry in jobs),
        "max_delay": 1 + max(entry["value"]["deadline"] - entry["birth"] for entry in jobs),
        "round_seconds": RULE.round_seconds,
        "jobs": jobs,
    }
    rules = {
        "name": "exponential",
        "epsilon": 0.05,
        "threshold": 0.05,
        "pricing": {"kind": "exponential", "floor": 0.02, "ceiling": 20},
        "oracle": {"kind": "monte-carlo", "samples": 1000, "refresh": 0.1},
    }
    return Scenario.from_dict({"name": "my log", "workload": workload, "mechanism": rules})


def interval(values: list[float]) -> str:
    """Return the mean and the 95 % interval of Student, in per cent."""
    x = 100 * np.array(values)
    return f"{x.mean():.1f} +- {t.ppf(0.975, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size):.1f} %"


def draw(result: Any, capacity: int, path: Path) -> None:
    """Draw the load of the last run, and what a node cost."""
    fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
    hours = result.rounds["round"] * RULE.round_seconds / 3600
    top.fill_between(hours, result.rounds["load"], step="mid", alpha=0.6)
    top.axhline(capacity, color="gray", linestyle=":")
    top.set(ylabel="nodes in use", title=f"dotted: all {capacity} nodes")
    bottom.step(hours, result.rounds["price"], where="mid", color="C1")
    bottom.set(ylabel="credits per node\nand round", xlabel="hours")
    fig.savefig(path, dpi=100)


def main() -> None:
    """Read the log, write the scenario, run it with several draws of the values."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, help=f"SWF, or CSV with {', '.join(COLUMNS)}; left out: a made-up log")
    parser.add_argument("--days", type=float, default=1.0, help="length of the market, the end of the log (1)")
    parser.add_argument("--load", type=float, default=1.2, help="work over what the nodes can do (1.2)")
    parser.add_argument("--seeds", type=int, default=5, help="draws of the values, at least 2 (5)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/your-trace.png"))
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: expected at least 2, an interval needs two runs")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    log = read_log(options.log or made_up_log(options.out.with_suffix(".swf")))
    scenarios = [scenario_of(log, options.days, options.load, seed) for seed in range(options.seeds)]
    results = [run(scenario, seed) for seed, scenario in enumerate(scenarios)]
    found = [result.summary for result in results]
    print(f"log: {len(log)} runs of {log.groupby(['user', 'executable']).ngroups} recurring jobs")
    print(f"market: {found[0]['jobs']} predicted runs on {found[0]['capacity']} nodes, {found[0]['horizon']} rounds")
    covered = [result.jobs["outcome"].eq("completed").mean() for result in results]
    print(f"completed: {interval(covered)} of the runs")
    print(f"welfare: {interval([each['share_of_best'] for each in found])} of the bound on any schedule")
    print(f"first come, first served at price zero: {interval([each['first_come_share'] for each in found])} of it")
    dump = options.out.with_suffix(".yaml")
    dump.write_text(dump_yaml(scenarios[-1].to_dict()))
    print(f"run it again: marketsched run {dump}")
    draw(results[-1], found[-1]["capacity"], options.out)


if __name__ == "__main__":
    main()
