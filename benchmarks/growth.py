"""How the cost of a market grows, each size alone: measured, fitted on logarithms, drawn.

    python benchmarks/growth.py --out docs/growth.png [--only PANEL,PANEL]

Eight panels. *Jobs*: `synthetic-pipelines`, a day, with more recurring jobs on as many more nodes. *Nodes*: the jobs of
the scenario on more nodes. *Paths*: posted prices with more sample paths. *Rounds*: the jobs of the scenario over more
rounds, fewer in each. *Owners*: 20,000 jobs of first-come by more owners. *Ports*: a slot of OgaSched with more ports.
*Jobs with shapes*: of three resources on as many more nodes of two kinds. *Live jobs*: the day of a live market, its
journal on SQLite, with submission, arrival and completion of each job. With ``--only`` other panels keep the numbers
that stand beside the figure.
Times are of one process's processor: what a run of the market takes, tables included and the workload not; each the
least of ``--repeats``, as what else the machine does only adds to it. The exponent is the slope of the least-squares
line through the logarithms. Beside the figure go the numbers, as JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from harness import write_json  # noqa: E402
from marketsched.agents.job import Job  # noqa: E402
from marketsched.agents.market_run import MarketRun  # noqa: E402
from marketsched.agents.setup import MarketSetup  # noqa: E402
from marketsched.config.scenario import Scenario  # noqa: E402
from marketsched.live import calls  # noqa: E402
from marketsched.live.principal import Principal  # noqa: E402
from marketsched.live.service import LiveService  # noqa: E402
from marketsched.mechanisms import DeadlineValue, StatementOfWork  # noqa: E402
from marketsched.mechanisms.allocation import OgaSched, published_instance  # noqa: E402
from marketsched.mechanisms.registry import get_mechanism  # noqa: E402
from marketsched.results.panels import STYLE, look, save_figure, short  # noqa: E402

MECHANISMS = ("first-come", "bid-price", "posted-price", "two-offers", "cluster-bid-price")
Sizes = list[tuple[float, float]]  # (size, seconds)


def jobs(mechanism: str, samples: int | None = None, **workload: int) -> tuple[int, float]:
    """Return the number of jobs of a day of made-up recurring jobs, and the seconds that its market takes."""
    data = Scenario.load("synthetic-pipelines").with_mechanism(mechanism).to_dict()
    data["workload"] |= workload
    if samples is not None:
        data["mechanism"]["oracle"]["samples"] = samples
    setup = Scenario.from_dict(data).setup(np.random.default_rng(0))
    return len(setup.jobs), _played(setup)


def _played(setup: MarketSetup) -> float:
    gc.collect()
    begin = time.process_time()
    MarketRun(setup).run()
    return time.process_time() - begin


def owners(n_owners: int, n_jobs: int = 20_000, horizon: int = 2_000) -> tuple[int, float]:
    """Return the number of owners, and the seconds of first-come with jobs that belong to them in turn."""
    rng = np.random.default_rng(0)
    births = np.sort(rng.integers(1, horizon - 20, n_jobs)).tolist()
    made = []
    for i, birth in enumerate(births):
        law = [(birth + 5, 1, 0.5), (birth + 5, 2, 0.5)]
        truth = StatementOfWork(birth, 1, DeadlineValue(float(rng.uniform(1, 10)), birth + 12), law)
        made.append(Job(f"job-{i}", f"owner-{i % n_owners}", truth, birth + 5, 1 + i % 2, 1 + i % 2))
    limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 20}
    mechanism = get_mechanism("first-come", capacity=15, horizon=horizon, rng=rng, **limits)
    return n_owners, _played(MarketSetup("owners", made, mechanism, 15, horizon, 20))


def ports(n_ports: int, slots: int = 200) -> tuple[int, float]:
    """Return the number of ports, and the seconds of a slot of OgaSched with 256 instances and 6 resources."""
    rng = np.random.default_rng(4)
    policy = OgaSched(published_instance(rng, n_ports=n_ports, n_instances=256), 10_000)
    arrivals = (rng.random((slots, n_ports)) < 0.7).astype(np.int64)
    for each in arrivals:
        policy.update(each)
    begin = time.process_time()
    for each in arrivals:
        policy.update(each)
    return n_ports, (time.process_time() - begin) / slots


def shapes(mechanism: str, groups: int) -> tuple[int, float]:
    """Return the number of jobs with shapes, and the seconds that their market takes."""
    parts = {"cpu": {"unit": "core", "parts": 1000}, "memory": {"unit": "GiB", "parts": 1024}}
    parts["gpu"] = {"device": True, "parts": 1000}
    each = {"a": {"cpu": 96, "memory": 768, "gpu": 8}, "c": {"cpu": 64, "memory": 256}}
    kinds = [{"name": kind, "kind": kind, "nodes": groups, "each": amounts} for kind, amounts in each.items()]
    sorts = [
        {"name": "train", "share": 1, "value": 60, "patience": 72, "shapes": [{"each": each["a"], "on": {"a": 12}}]},
        {
            "name": "simulate",
            "share": 4,
            "value": 2,
            "patience": 48,
            "shapes": [{"each": {"cpu": 16, "memory": 32}, "on": {"a": 9, "c": 9}}],
        },
    ]
    workload = {"kind": "cluster-mix", "cluster": {"resources": parts, "groups": kinds}, "rounds": 144}
    workload |= {"round_seconds": 600, "per_round": groups, "sorts": sorts}
    content = {"name": "shapes", "workload": workload, "mechanism": {"name": mechanism}}
    setup = Scenario.from_dict(content).setup(np.random.default_rng(0))
    return len(setup.jobs), _played(setup)


def live(mechanism: str, n_jobs: int, rounds: int = 100) -> tuple[int, float]:
    """Return the number of jobs, and the seconds of a live market in which each is submitted, arrives and completes."""
    sizes = {"capacity": n_jobs // 10, "horizon": rounds + 5, "max_concurrency": 1, "max_duration": 4}
    config = {"mechanism": mechanism, **sizes, "max_value": 10, "max_delay": 20, "requests_per_second": 1e9}
    operator, owner = Principal("operator", "operator"), Principal("ann", "owner")
    with tempfile.TemporaryDirectory() as folder:
        service = LiveService(f"{folder}/market.db", config)
        service.start()
        try:
            begin = time.process_time()
            service.ask(calls.create_owner(operator, {"owner": "ann", "deposit": 1e9})).result()
            for now in range(1, rounds + 1):
                value = {"kind": "deadline", "value": 5, "deadline": now + 8}
                law = [{"arrival": now, "duration": 1, "probability": 1}]
                statement = {"sow": {"concurrency": 1, "value": value, "requirements": law}}
                asked = [service.ask(calls.submit(owner, statement)) for _ in range(n_jobs // rounds)]
                names = [each.result()["job"] for each in asked]
                for each in [service.ask(calls.arrive(owner, name, {"signal": 1})) for name in names]:
                    each.result()
                service.ask(calls.advance(operator, {})).result()
                for each in [service.ask(calls.complete(operator, name, {"exit_code": 0})) for name in names]:
                    each.result()
            return n_jobs, time.process_time() - begin
        finally:
            service.stop()


def measured(repeats: int, only: Sequence[str] = ()) -> dict[str, dict[str, Sizes]]:
    """Return, of each panel or of some, what was measured by mechanism."""

    def least(play: Callable[..., tuple[int, float]], *given: Any, size: int | None = None, **named: Any) -> Any:
        found = [play(*given, **named) for _ in range(repeats)]
        print(given, named, found, file=sys.stderr)
        return found[0][0] if size is None else size, min(seconds for _, seconds in found)

    def some(play: Callable[..., tuple[int, float]], *given: Any, sizes: Sequence[dict[str, Any]]) -> Sizes:
        return [least(play, *given, **each) for each in sizes]

    def by_mechanism(names: Sequence[str], sizes: Sequence[dict[str, Any]]) -> dict[str, Sizes]:
        for name in names:
            jobs(name, recurring_jobs=20)  # compiled
        return {name: some(jobs, name, sizes=sizes) for name in names}

    def first(*given: Any) -> None:
        for play, *more in given:
            play(*more)  # compiled

    usual, with_offers = MECHANISMS[:3], MECHANISMS[:4]
    rounds = [{"size": 288 * k, "recurring_jobs": 1600 // k, "birth_rounds": 288 * k} for k in (1, 2, 4, 8, 16)]
    first((owners, 5, 100), (shapes, "cluster-bid-price", 1), (live, "first-come", 200))
    panels: dict[str, Callable[[], dict[str, Sizes]]] = {
        "jobs": lambda: by_mechanism(with_offers, [{"recurring_jobs": n} for n in (200, 400, 800, 1600, 3200)]),
        "nodes": lambda: by_mechanism(usual, [{"size": n, "capacity": n} for n in (10**2, 10**3, 10**4, 10**5, 10**6)]),
        "paths": lambda: {"posted-price": [least(jobs, "posted-price", n, size=n) for n in (250, 1000, 4000, 16_000)]},
        "rounds": lambda: by_mechanism(usual, rounds),
        "owners": lambda: {"first-come": [least(owners, n) for n in (10, 100, 1000, 10_000)]},
        "ports": lambda: {"ogasched, a slot": [least(ports, n) for n in (5, 10, 20, 40, 80, 160)]},
        "jobs with shapes": lambda: {
            "cluster-bid-price": [least(shapes, "cluster-bid-price", n) for n in (2, 4, 8, 16)]
        },
        "live jobs": lambda: {"first-come": [least(live, "first-come", n) for n in (500, 1000, 2000, 4000)]},
    }
    return {name: play() for name, play in panels.items() if not only or name in only}


def exponent(sizes: Sizes) -> float:
    """Return the slope of the least-squares line through the logarithms."""
    x, y = np.log(np.array(sizes)).T
    return float(np.polyfit(x, y, 1)[0])


def draw(found: dict[str, dict[str, Sizes]], out: Path) -> None:
    """Draw one panel for each size."""
    with matplotlib.rc_context(STYLE | {"font.size": 10}):
        figure = Figure(figsize=(14, 6.4), facecolor="white")
        panels = figure.subplots(2, 4).ravel()
        figure.subplots_adjust(left=0.055, right=0.99, top=0.97, bottom=0.08, wspace=0.28, hspace=0.28)
        for axes, (size, curves) in zip(panels, found.items(), strict=False):
            _panel(axes, size, curves)
        for axes in panels[len(found) :]:  # numbers that were measured before there was such a panel
            axes.remove()
    save_figure(figure, out, dpi=80)


def _panel(axes: Axes, size: str, curves: dict[str, Sizes]) -> None:
    for name, sizes in curves.items():
        place = MECHANISMS.index(name) if name in MECHANISMS else len(MECHANISMS)
        x, y = np.array(sizes).T
        axes.plot(x, y, marker="o", markersize=4, label=f"{name}: {exponent(sizes):.2f}", **look(place))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(size)
    axes.set_ylabel("processor seconds")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, high / 10), high * 10)  # room for the legend; no panel is all noise
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if x[-1] > 30 * x[0] else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.legend(frameon=False, fontsize=9, loc="upper left")


def main() -> None:
    """Measure, write the numbers, draw."""
    parser = argparse.ArgumentParser(description="Measure and draw how the cost of a market grows.")
    parser.add_argument("--out", type=Path, default=Path("build/growth.png"), help="figure (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=2, help="plays of each size (default: %(default)s)")
    parser.add_argument("--draw", type=Path, metavar="JSON", help="draw numbers that were measured before")
    parser.add_argument("--only", default="", help="panels, separated by commas; the others keep their numbers")
    chosen = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)  # as the command line sets it
    only = [name.strip() for name in chosen.only.split(",") if name.strip()]
    found = json.loads((chosen.draw or chosen.out.with_suffix(".json")).read_text()) if chosen.draw or only else {}
    if not chosen.draw:
        found |= measured(chosen.repeats, only)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(found, chosen.out.with_suffix(".json"))
    draw(found, chosen.out)
    for size, curves in found.items():
        print(size, {name: round(exponent(sizes), 2) for name, sizes in curves.items()})


if __name__ == "__main__":
    main()
