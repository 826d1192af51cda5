"""What bid prices are worth when the forecast they are made from is wrong, beside first come, first served."""

import argparse
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t

from marketsched import BidPrice, FirstCome, Market, Scenario, StatementOfWork, figure_style
from marketsched.mechanisms import Mechanism, StatementLaw

LOADS = (0.85, 1.25)  # work asked for, over what the nodes can do
SIX_HOURS = 72  # rounds of five minutes
SIZES = ("max_concurrency", "max_duration", "max_value", "max_delay")
LOGS = {  # of the day before: workloads, as in a scenario file
    "a log of twice as many jobs": {"kind": "synthetic-pipelines", "recurring_jobs": 800},
    "a log of another market": Scenario.load("stochastic-mix").to_dict()["workload"],
}


def shifted(law: StatementLaw, rounds: int) -> StatementLaw:
    """Return a law of the same job, announced and ready ``rounds`` later."""

    def later(sow: StatementOfWork) -> StatementOfWork:
        value = replace(sow.value, deadline=sow.value.deadline + rounds)
        ready = [(each.arrival + rounds, each.duration, each.probability) for each in sow.requirements]
        return StatementOfWork(sow.birth + rounds, sow.concurrency, value, ready)

    return StatementLaw([(later(sow), p) for sow, p in law.cases])


def stream(seed: int) -> np.random.Generator:
    """Return the root of all that is drawn for one day."""
    return np.random.default_rng(np.random.SeedSequence(seed))


def laws_of(scenario: Scenario, seed: int) -> list[StatementLaw]:
    """Return what is known in advance of the jobs of one day."""
    build, again = (stream(seed).spawn(3)[0] for _ in range(2))
    return scenario.workload.statement_laws(scenario.workload.build(build, None), again, None)


def forecasts(scenario: Scenario, seed: int) -> dict[str, list[StatementLaw] | None]:
    """Return the laws that each forecast believes in; None: none, prices come from the day's own past."""
    laws, other = laws_of(scenario, seed), laws_of(scenario, seed + 1000)
    kept = np.random.default_rng(seed).random(len(laws)) < 0.5
    return {
        "no laws, the day's own past": None,
        "the true laws": list(laws),
        "laws of another day's jobs": list(other),
        "half of the laws": [law for law, keep in zip(laws, kept, strict=True) if keep],
        "every law twice": [*laws, *laws],
        "laws six hours late": [shifted(law, SIX_HOURS) for law in laws],
    }


def gains(scenario: Scenario, seed: int) -> dict[tuple[str, float], float]:
    """Return the welfare of each forecast over that of first come at price 0, less 1, in per cent."""
    setup = scenario.setup(stream(seed))
    sizes = {name: getattr(setup.mechanism, name) for name in SIZES}
    work = sum(job.truth.concurrency * job.duration for job in setup.jobs if job.arrival is not None)
    span = max(job.truth.birth for job in setup.jobs)
    found = {}
    for load in LOADS:
        nodes = round(work / (load * span))

        def welfare(mechanism: Mechanism, nodes: int = nodes) -> float:
            return Market(replace(setup, mechanism=mechanism, capacity=nodes)).run().outcome["welfare"]

        first = welfare(FirstCome(nodes, setup.horizon, **sizes))
        for name, laws in forecasts(scenario, seed).items():
            source = {"forecast": "history"} if laws is None else {"forecast": "laws", "laws": laws}
            earned = welfare(BidPrice(nodes, setup.horizon, **sizes, **source, rng=seed))
            found[name, load] = 100 * (earned / first - 1)
        for name, log in LOGS.items():
            known = scenario.with_mechanism("bid-price", {"parameters.history": log}).with_capacity(nodes)
            found[name, load] = 100 * (welfare(known.setup(stream(seed)).mechanism) / first - 1)
    return found


def main() -> None:
    """Play every forecast at both loads; print a table and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="days for each forecast and load, at least 2 (5)")
    parser.add_argument("--out", type=Path, default=Path("build/examples/forecasts-that-lie.png"))
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds {options.seeds}: expected at least 2, an interval needs two days")
    scenario = Scenario.load("synthetic-pipelines").with_mechanism("first-come")
    days = [gains(scenario, 200 + i) for i in range(options.seeds)]
    names = list(dict.fromkeys(name for name, _ in days[0]))
    quantile = t.ppf(0.975, options.seeds - 1) / np.sqrt(options.seeds)
    print(f"welfare over first come at price 0, %, mean +- 95 % interval, {options.seeds} days")
    print(f"{'forecast':30}" + "".join(f"{f'load {load}':>18}" for load in LOADS))
    plt.rcParams.update(figure_style())
    fig, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for load, marker in zip(LOADS, "os", strict=True):
        rows = np.array([[day[name, load] for name in names] for day in days])
        axis.errorbar(
            rows.mean(0), names, xerr=quantile * rows.std(0, ddof=1), fmt=marker, capsize=3, label=f"load {load}"
        )
    for name in names:
        row = np.array([[day[name, load] for load in LOADS] for day in days])
        cells = zip(row.mean(0), quantile * row.std(0, ddof=1), strict=True)
        print(f"{name:30}" + "".join(f"{mean:10.2f} +- {half:4.2f}" for mean, half in cells))
    axis.invert_yaxis()
    axis.axvline(0, color="0.4", lw=1)
    axis.set_xlabel("welfare over first come, first served at price 0, %")
    axis.legend(fontsize=9)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(options.out, dpi=100)


if __name__ == "__main__":
    main()
