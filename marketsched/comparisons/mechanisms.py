"""Mechanisms on the same jobs: welfare, revenue, and E[OPT] / E[welfare] with intervals.

For each seed the workload is built once, and every mechanism meets it. The best schedule in hindsight is known
exactly where it can be found in time, and otherwise enclosed (`Bracket`); the ratio of means is enclosed accordingly,
and its interval covers the sampling of the runs on top. It also has paired differences to first-come at price 0 and
at the best flat price in hindsight (`flat_prices`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.market_run import MarketRun
from marketsched.agents.result import RunResult
from marketsched.agents.setup import MarketSetup
from marketsched.comparisons.contest import WHOLE_SEED, Found, Tell
from marketsched.comparisons.flat_prices import FirstComeOnCluster, FlatPrices, bounded_runs, paired_differences
from marketsched.comparisons.recorded import (
    NOTHING_TAKEN_BACK,
    RECORDED,
    fidelity,
    fidelity_between,
    recorded_figures,
    recorded_jobs,
)
from marketsched.config.mechanism_choice import with_unknown_owners
from marketsched.config.named_mechanisms import NamedMechanism, named_mechanisms
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import is_log
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.mechanisms.promises import truth_verdict
from marketsched.mechanisms.registry import builder_of, get
from marketsched.play.kept_results import canonical
from marketsched.play.optimum import Bracket
from marketsched.recorded.waits import causes_words
from marketsched.results.overtaking import causes_table, keeps_of, waits_figures
from marketsched.results.owners import FIGURES, READ, owners_figures, owners_table
from marketsched.results.paired_statistics import CONFIDENCE, Estimate, losses_seen, ratio_of_means, spread
from marketsched.results.schedules import schedule_table
from marketsched.results.versus import paired_owners
from marketsched.results.waits import waits_table
from marketsched.results.windows import by_window, users_drawn, window_of
from marketsched.worlds.workload import Workload

COUNTED = (
    "welfare",
    "revenue",
    "owners_utility",
    "jobs",
    "completed",
    "dropped",
    "cancelled",
    "evicted",
    "requeues",
    "lost_node_rounds",
    "utilisation",
    "utilisation_open",
)
PROMISED = ("promised_ratio", "promise_holds", "promise_conditions")
MOST_REPEATED, FEW_JOBS = 10_000, 1_000  # jobs of a market, and of a log, that are played again
BEYOND = 0.005  # share of the recorded node time on more nodes than there are: no bound speaks of such a schedule
NOT_PROMISED = {**dict(zip(PROMISED, (np.nan, False, ""), strict=True)), "truthful": "", "truthful_but": ""}


class MechanismContest:
    """Mechanisms of one market; see `marketsched.comparisons.comparing.Contest`."""

    compared: ClassVar[str] = "mechanisms"
    kind: ClassVar[str] = "mechanisms"
    summed_only: ClassVar[tuple[str, ...]] = ("promises", "notes", "lengths", "drawn")
    parts: tuple[str, ...] = WHOLE_SEED

    def __init__(
        self,
        base: Scenario,
        mechanisms: Sequence[str | Callable[..., Any]],
        data: str | PathLike[str] | None,
        seconds: float,
        drawn_seed: int | None = None,
        against: str | None = None,
        windows: int = 1,
        resample: bool = False,
    ) -> None:
        """Of a log, who ran when in ``drawn_seed`` is kept for pictures; seeds are of its windows in turn.

        With ``resample`` the users of every other draw of a window are drawn again, too; of one window those of all.
        """
        self._drawn_seed, self.windows, self._resample = drawn_seed, windows, resample
        self._base, self._data, self._seconds = base, data, seconds
        self._mechanisms, self.rival = _contestants(base, mechanisms, against)
        self.labels = [each.label for each in self._mechanisms]
        self.steps = len(self.labels) + 2

    def play(self, seed: int, part: int, tell: Tell) -> Found:
        """Return one row per mechanism for the jobs of one seed."""
        return self.play_on(self.workload_of(seed), None, seed, tell)

    def base_of(self, seed: int) -> Scenario:
        """Return the scenario of a seed: that of its window, where there are several."""
        own: dict[str, Any] = {"resample_users": users_drawn(seed, self.windows)} if self._resample else {}
        own |= {"windows": self.windows, "window": window_of(seed, self.windows)} if self.windows > 1 else {}
        if not own:
            return self._base
        return self._base.model_copy(update={"workload": self._base.workload.model_copy(update=own)})

    def workload_of(self, seed: int) -> Workload:
        """Return the jobs of a seed, with warnings for all mechanisms."""
        workload = self.base_of(seed).workload_of(seed, self._data)
        for each in self._mechanisms:
            workload = with_unknown_owners(workload, each.scenario.mechanism.parameters)
        return workload

    def play_on(self, workload: Workload, capacity: int | None, seed: int, tell: Tell) -> Found:
        """Play all contestants on jobs that are built, on ``capacity`` nodes; None: on those of the scenario.

        A mechanism that refuses this capacity has the reason in column ``refused``, and no figures.
        """
        world = _World(workload, capacity, seed, self._data)
        flat: FlatPrices | FirstComeOnCluster
        if workload.cluster is None:
            flat = FlatPrices(self._base, world.setup, lambda setup: float(world.played(setup)["welfare"]))
        else:
            flat = FirstComeOnCluster(workload.cluster)
        rows: list[dict[str, Any]] = []
        promises = []
        waits: list[pd.DataFrame] = []
        causes: list[pd.DataFrame] = []
        owners: list[pd.DataFrame] = []
        schedules: list[pd.DataFrame] = []
        pools: list[pd.DataFrame] = []
        log = "rule" in workload.notes
        played: dict[str, tuple[pd.DataFrame, NDArray[np.float64]]] = {}
        record: pd.DataFrame | None = None
        for each in self._mechanisms:
            tell(f"seed {seed}, {each.label}")
            began = time.perf_counter()
            try:
                setup = world.setup(each.scenario)
            except InvalidParameterError as error:
                if capacity is None:
                    raise
                rows.append({"mechanism": each.label, "welfare": np.nan, "refused": str(error)})
                continue
            promises.append({"mechanism": each.label, **_promised(each, setup)})
            with placed(source=f"{each.label}, seed {seed}"):
                result, on_pools, offered = world.result(setup)
            summary = result.outcome
            read = result.job_rows.frame(columns=READ)
            by_owner = owners_table(read, offered)
            if self.rival is not None:
                played[each.label] = read, offered
            owners.append(by_owner.assign(seed=seed, mechanism=each.label))
            if on_pools is not None:
                pools.append(on_pools.assign(seed=seed, mechanism=each.label))
            if workload.of_log:  # who waited how long is asked of it
                table = waits_table(result.jobs, workload.round_seconds)
                waits.append(table.assign(seed=seed, mechanism=each.label))
            if log and seed == self._drawn_seed:
                lost = result.job_rows.taken_back
                schedules.append(schedule_table(result.jobs, each.label, setup.horizon, workload.round_seconds, lost))
            row = {"mechanism": each.label, **{name: summary[name] for name in COUNTED}}
            row |= owners_figures(by_owner)
            if workload.of_log and workload.cluster is None and workload.round_seconds:
                sizes = flat.capacity, setup.horizon, workload.round_seconds
                row |= waits_figures(result.jobs, result.job_rows.taken_back, offered, *sizes)
                keeps = keeps_of(setup.mechanism, workload.table.disclosure == "revealed")
                table = causes_table(result.jobs, result.job_rows.taken_back, *sizes, keeps)
                causes.append(table.assign(seed=seed, mechanism=each.label))
                record = recorded_jobs(workload, result.jobs) if record is None else record
                row |= {} if record is None else fidelity(record, result.jobs, workload.round_seconds)
            rows.append({**row, "seconds": time.perf_counter() - began})
            flat.note(setup, row["welfare"])
        tell(f"seed {seed}, first-come at flat prices")
        flat_prices = flat.figures()
        tell(f"seed {seed}, best schedule in hindsight")
        best = max(row["welfare"] for row in [*rows, {"welfare": 0.0}] if np.isfinite(row["welfare"]))
        bracket = flat.bracket(self._seconds)
        # Sums differ in the last digit.
        bracket = Bracket(max(bracket.low, best), max(bracket.high, best), bracket.kind)
        about = {"scenario": self._base.name, "seed": seed}
        optimum = {"opt_low": bracket.low, "opt_high": bracket.high, "opt_kind": bracket.kind}
        if record is not None:
            found = self._recorded(workload, record, offered, flat.capacity)
            rows.append(found["row"])
            promises.append({"mechanism": RECORDED, **NOT_PROMISED})
            owners.append(found["owners"].assign(seed=seed, mechanism=RECORDED))
            waits.append(found["waits"].assign(seed=seed, mechanism=RECORDED))
            schedules += [found["schedule"]] if schedules else []
            if self.rival is not None:
                played[RECORDED] = record, offered
        return {
            "runs": [{**about, **row, **optimum, **flat_prices} for row in rows],
            "promises": promises,
            "notes": [dict(workload.notes)],
            "lengths": [workload.round_seconds],
            "owners": owners,
            **({"against": self._pairs(played, seed)} if self.rival in played else {}),
            **({"waits": waits} if waits else {}),
            **({"causes": causes} if causes else {}),
            **({"pools": pools} if pools else {}),
            **({"schedules": schedules, "drawn": [_drawn(workload, flat.capacity, seed)]} if schedules else {}),
        }

    def _recorded(
        self, workload: Workload, record: pd.DataFrame, offered: NDArray[np.float64], capacity: int
    ) -> dict[str, Any]:
        """Return the row of the schedule that the log records, and its tables."""
        length, last = workload.round_seconds, workload.horizon
        assert length is not None
        by_owner = owners_table(record, offered)
        row = {"mechanism": RECORDED, **recorded_figures(record, capacity, last), **owners_figures(by_owner)}
        row |= waits_figures(record, NOTHING_TAKEN_BACK, offered, capacity, last, length)
        return {
            "row": {**row, "seconds": 0.0},
            "owners": by_owner,
            "waits": waits_table(record, length),
            "schedule": schedule_table(record, RECORDED, last, length, NOTHING_TAKEN_BACK),
        }

    def _why_jobs_waited(self) -> str:
        """Return the causes of all waiting that the log records, in a sentence; empty where nobody waited."""
        workload = self._base.workload
        log, _ = workload.recipe().read(self._data)
        return causes_words(log.of_partition(workload.partition), workload.capacity)

    def _pairs(self, played: Mapping[str, tuple[pd.DataFrame, NDArray[np.float64]]], seed: int) -> list[pd.DataFrame]:
        """Return what owners wait and get under each mechanism and under the rival."""
        second = played[str(self.rival)][0]
        return [
            paired_owners(first, second, offered).assign(seed=seed, mechanism=label)
            for label, (first, offered) in played.items()
            if label != self.rival
        ]

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row per mechanism, with its promise in the first seed."""
        promises = tables["promises"].drop_duplicates("mechanism")
        labels = [*self.labels, *([RECORDED] if RECORDED in tables["runs"]["mechanism"].array else [])]
        runs = by_window(tables["runs"], self.windows, ["mechanism"])
        found = summary_table(runs, labels, CONFIDENCE, self.rival)
        if self.windows > 1 and RECORDED in labels:
            between = fidelity_between(tables["waits"], self.windows, tables["lengths"].to_numpy()[0, 0])
            found = found.set_index("mechanism").assign(**between).reset_index()
        return found.merge(promises, on="mechanism")

    def about(self, found: Found) -> dict[str, Any]:
        """Return the rival, the time limit of a seed's exact optimum, and the description of the workload."""
        drawn = {"schedules": found["drawn"][0]} if "drawn" in found else {}
        about = {"against": self.rival, "optimum_seconds": self._seconds, "round_seconds": found["lengths"][0]}
        about |= {"windows": self.windows} if self.windows > 1 else {}
        about |= {"resample": "users"} if self._resample else {}
        if any(row["mechanism"] == RECORDED for row in found["runs"]):
            about["waits"] = self._why_jobs_waited()
        first = found["runs"][0]
        if first.get("jobs", 0) <= MOST_REPEATED or "rule" in found["notes"][0]:
            about |= {"unrepeatable": why} if (why := self._unrepeatable(int(first["seed"]))) else {}
        return {**about, "workload": _notes_of(found["notes"] if self.windows > 1 else found["notes"][:1]), **drawn}

    def _unrepeatable(self, seed: int) -> dict[str, str]:
        """Return why plays of one seed differ, by mechanism: those of one's own are played several times.

        Of a log they meet its last jobs alone.
        """
        foreign = [each for each in self._mechanisms if not _of_package(each.scenario.mechanism.name)]
        if not foreign:
            return {}
        from marketsched.truthfulness.situations import reproducible  # for such mechanisms alone

        workload, found = self.base_of(seed).workload, {}
        if is_log({"workload": {"kind": workload.kind}}):
            workload = workload.model_copy(update={"most_jobs": min(workload.most_jobs, FEW_JOBS)})
        for each in foreign:
            own = each.scenario.model_copy(update={"workload": workload})
            found[each.label] = reproducible.why_not(own, seed, self._data)
        return {label: why for label, why in found.items() if why}


def _contestants(
    base: Scenario, tokens: Sequence[str | Callable[..., Any]], against: str | None
) -> tuple[list[NamedMechanism], str | None]:
    """Return all contestants, and the label of the one that others are compared with: of two, the second."""
    named = named_mechanisms(base, tokens)
    if against is None:
        return named, named[1].label if len(named) == 2 else None
    if against == RECORDED:
        return named, RECORDED
    (rival,) = named_mechanisms(base, [against])
    if rival.label not in [each.label for each in named]:
        named.append(rival)
    if len(named) < 2:
        raise InvalidParameterError(place="against", value=against, legal="another mechanism than the one compared")
    return named, rival.label


class _World:
    """The jobs of one seed on so many nodes, for any mechanism."""

    def __init__(self, workload: Workload, capacity: int | None, seed: int, data: str | PathLike[str] | None) -> None:
        self._workload, self._capacity, self._seed, self._data = workload, capacity, seed, data

    def setup(self, scenario: Scenario) -> MarketSetup:
        """Return the setup that `Scenario.setup` makes of this seed."""
        market = scenario if self._capacity is None else scenario.with_capacity(self._capacity)
        return market.setup(self._rng(), data=self._data, workload=self._workload)

    def played(self, setup: MarketSetup) -> dict[str, Any]:
        """Play a setup to its end; return the summary."""
        return self.result(setup)[0].outcome

    def result(self, setup: MarketSetup) -> tuple[RunResult, pd.DataFrame | None, NDArray[np.float64]]:
        """Play a setup to its end; return its result, on a cluster the figures of its pools, and what jobs offer."""
        market = MarketRun(setup, lookahead=0)
        return market.run(), market.pool_figures(), market.offered()

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._seed))


def _notes_of(notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what holds of all windows of a log: what is equal, else a range of numbers, or the part up to ``;``."""
    found: dict[str, Any] = {}
    for name in notes[0]:
        told = list(dict.fromkeys(str(each.get(name, "")) for each in notes))
        if len(told) == 1:
            found[name] = notes[0][name]
        elif all(each.replace(".", "", 1).isdigit() for each in told):
            found[name] = f"{min(told, key=float)} to {max(told, key=float)}, by window"
        elif name == "warnings":  # of the first: most are the log's own
            found[name] = notes[0][name]
        elif len({each.partition(";")[0] for each in told}) == 1:
            found[name] = told[0].partition(";")[0]
    return found


def _of_package(name: str) -> bool:
    return str(get("mechanism", name).__module__).partition(".")[0] == "marketsched"


def _drawn(workload: Workload, capacity: int, seed: int) -> dict[str, Any]:
    """Return what pictures of schedules say of the market they are of."""
    sizes = {"capacity": capacity, "rounds": workload.horizon, "last_birth": workload.birth_rounds}
    return {"seed": seed, "round_seconds": workload.round_seconds, **sizes}


def _promised(mechanism: NamedMechanism, setup: MarketSetup) -> dict[str, Any]:
    promise = mechanism.promise(setup)
    alpha = np.nan if promise.alpha is None else promise.alpha
    ratio = dict(zip(PROMISED, (alpha, promise.holds, promise.conditions), strict=True))
    verdict, lie = truth_verdict(setup.mechanism, setup.table.disclosure)
    choice = mechanism.scenario.mechanism
    if verdict == "unknown":
        found = _tiny_verdict(choice.name, canonical(dict(choice.parameters)))
        # In the tiny domains durations are revealed: where they are hidden, only a lie that pays says something.
        verdict, lie = found if setup.table.revealed or found[0] == "fails" else (verdict, lie)
    return {**ratio, "truthful": verdict, "truthful_but": lie}


@lru_cache(maxsize=64)
def _tiny_verdict(name: str, parameters: str) -> tuple[str, str]:
    """Return what tiny domains say of truth under a mechanism of which nothing is stated."""
    from marketsched.truthfulness.checks.tiny_verdict import tiny_verdict  # the searches, for such mechanisms alone

    return tiny_verdict(partial(builder_of(name), **json.loads(parameters)))


def summary_table(
    runs: pd.DataFrame, mechanisms: Sequence[str], confidence: float, rival: str | None = None
) -> pd.DataFrame:
    """Return one row per mechanism.

    ``ratio_low`` and ``ratio_high`` enclose E[OPT] / E[welfare] as far as OPT is known: equal where
    every optimum is exact. ``interval_low`` and ``interval_high`` are the outer ends of the intervals of
    the two: they cover the sampling of runs on top, and losses so rare that they may have been missed
    (``losses_seen``: runs that earned less than the bound on OPT; see `ratio_of_means`). ``behind`` is one
    minus the share of the winner's mean welfare, with its interval; the winner has the highest mean welfare here.
    ``over_first_come``, ``over_best_flat`` and ``over_best_flat_known`` are the differences that
    `paired_differences` makes, and with a rival ``over_rival``. ``own``, ``own_q10`` and ``own_worst`` are those of
    `owners_figures`, means over seeds.

    Parameters
    ----------
    runs : DataFrame
        One row per seed and mechanism: ``seed, mechanism, welfare, revenue, jobs, completed, opt_low,
        opt_high, opt_kind, ...``.
    mechanisms : sequence of str
        In the order of the rows.
    confidence : float
        Of every interval.
    rival : str, optional
        The mechanism that all are compared with, beside first-come.
    """
    by_name = {name: runs[runs["mechanism"] == name].sort_values("seed") for name in mechanisms}
    winner = max((name for name in mechanisms if name != RECORDED), key=lambda name: by_name[name]["welfare"].mean())
    other = None if rival is None else by_name[rival]
    return pd.DataFrame([_row(name, by_name[name], by_name[winner], confidence, other) for name in mechanisms])


def owners_means(runs: pd.DataFrame, confidence: float) -> dict[str, float]:
    """Return what owners get of their own: means over seeds with intervals (`owners_figures`)."""
    found: dict[str, float] = {}
    for name in FIGURES:
        each = spread(runs[name].to_numpy(), confidence)
        found |= {name: each.mean, f"{name}_low": each.low, f"{name}_high": each.high}
    return found


def _row(
    name: str, runs: pd.DataFrame, winner: pd.DataFrame, confidence: float, rival: pd.DataFrame | None
) -> dict[str, Any]:
    welfare, revenue = runs["welfare"].to_numpy(), runs["revenue"].to_numpy()
    best = runs["opt_low"].to_numpy(), runs["opt_high"].to_numpy()
    low, high = (ratio_of_means(opt, welfare, confidence=confidence, least=1.0) for opt in best)
    share = Estimate(1.0, 1.0, 1.0)
    if runs is not winner:
        share = ratio_of_means(welfare, winner["welfare"].to_numpy(), confidence=confidence)
    top = runs["opt_high"].mean()
    if name == RECORDED and runs["beyond"].gt(BEYOND).any():  # no schedule of these nodes: no share of its bound
        low = high = Estimate(np.nan, np.nan, np.nan)
        top = np.nan
    return {
        "mechanism": name,
        "runs": len(runs),
        "welfare": welfare.mean(),
        "revenue": revenue.mean(),
        "completed_share": runs["completed"].sum() / max(runs["jobs"].sum(), 1),
        "ratio_low": low.value,
        "ratio_high": high.value,
        "interval_low": low.low,
        "interval_high": high.high,
        "bounded_runs": bounded_runs(runs),
        "losses_seen": losses_seen(runs["opt_high"], welfare),
        "welfare_share": welfare.mean() / top if top > 0 else np.nan,
        "revenue_share": revenue.mean() / top if top > 0 else np.nan,
        "behind": 1 - share.value,
        "behind_low": 1 - share.high,
        "behind_high": 1 - share.low,
        **paired_differences(runs, confidence, rival),
        **owners_means(runs, confidence),
        "exact_optima": int((runs["opt_kind"] == "exact").sum()),
        "seconds": runs["seconds"].mean(),
        **{str(each): x for each, x in runs.filter(regex="^fidelity_|^beyond").mean().items()},
    }
