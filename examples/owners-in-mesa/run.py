"""Owners that look at the market before they bid, as agents of a Mesa model, over mechanisms and seeds."""

from dataclasses import replace

import matplotlib.pyplot as plt
import mesa
import numpy as np
from scipy import stats

from marketsched import Market, ScaleValue, Scenario, Truthful, figure_style, reporters


class BidsByLoad:  # a third of the value while nodes are idle, four fifths while they are not
    def watch(self, market):
        self.factor = 0.3 if market.load < market.setup.capacity else 0.8

    def report(self, truth, public):
        return ScaleValue(self.factor).report(truth, public)


class Watched(Market):
    def __init__(self, mechanism, lying, seed):
        day = Scenario.load("synthetic-pipelines").with_changes("workload.utilisation=1.25").with_mechanism(mechanism)
        setup = day.setup(np.random.default_rng(seed))
        liars = {job.owner for job in setup.jobs if job.owner.endswith("7")} if lying else set()
        super().__init__(replace(setup, strategy=lambda job: BidsByLoad() if job.owner in liars else Truthful()))
        self.datacollector = mesa.DataCollector({**reporters("round", "load", "welfare"), "sevens": Watched.sevens})

    def step(self):
        super().step()
        self.datacollector.collect(self)

    def sevens(self):  # utility of the owners whose name ends in 7, at the end
        return np.nan if self.running else self.result().jobs.query("owner.str.endswith('7')")["utility"].sum()


SEEDS = range(6)
MECHANISMS = ["pay-as-bid", "bid-price"]


def main() -> None:
    """Play the batch; print what the liars gained, and draw the first seed's nodes in use."""
    settings = {"mechanism": MECHANISMS, "lying": [False, True], "seed": list(SEEDS)}
    runs = mesa.batch_run(Watched, settings, data_collection_period=1, display_progress=False)
    with plt.rc_context(figure_style()):
        fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
        for mechanism, axis in zip(MECHANISMS, axes, strict=True):
            last = {(row["lying"], row["seed"]): row for row in runs if row["mechanism"] == mechanism}
            true, lying = (np.array([last[lies, seed]["sevens"] for seed in SEEDS]) for lies in (False, True))
            gain = (lying - true) / 1000
            half = stats.t.ppf(0.975, gain.size - 1) * gain.std(ddof=1) / gain.size**0.5
            print(f"{mechanism:11} truth {true.mean() / 1000:7.3f}, bids by load {lying.mean() / 1000:7.3f},")
            print(f"{'':11} gain {gain.mean():.3f} +- {half:.3f} thousand credits of the liars together")
            for lies, style in ((False, "-"), (True, ":")):
                first = [r for r in runs if (r["mechanism"], r["lying"], r["seed"]) == (mechanism, lies, 0)]
                label = "a tenth bids by load" if lies else "all tell the truth"
                axis.plot([r["round"] for r in first], [r["load"] for r in first], style, label=label, lw=1.3)
            axis.set(title=mechanism, xlabel="round")
        axes[0].set_ylabel("nodes in use")
        axes[0].legend(frameon=False, loc="lower right")
        fig.savefig("figure.png", dpi=110)


if __name__ == "__main__":
    main()
