"""Run tables and figures of the four papers: one, or all of them, in one process or several."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from marketsched.mechanisms.legal import Count, Seed, Whole, legal
from marketsched.mechanisms.signatures import renamed
from marketsched.papers.experiment_kind import verdict_counts
from marketsched.papers.experiments import experiment_of
from marketsched.papers.folder import kept, write_overview
from marketsched.papers.runs import SEEDS, Bench, Experiment, lines_table
from marketsched.play.kept_results import fingerprint
from marketsched.play.parallel import Where, run_many
from marketsched.results.output import check_target
from marketsched.results.result import Result

Progress = Callable[[int, int, str], None]  # experiments finished, experiments in all, what is being run


def reproduce(
    name: str,
    *,
    full: bool = False,
    runs: int | None = None,
    slots: int | None = None,
    seed: int = 0,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
    bench: Bench | None = None,
) -> Result:
    """Run one table or figure of a paper, and hold it against the paper's numbers.

    Parameters
    ----------
    name : str
        As listed by ``marketsched reproduce --list``.
    full : bool
        The paper's sizes; may take hours.
    runs : int, optional
        Seeds ``seed .. seed + runs - 1``, at least 2; None: 20, or the experiment's own default.
    slots : int, optional
        In place of the experiment's own number of slots.
    data : path, optional
        Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
    out : path, optional
        Folder for table, figure and runs; None: nothing is written. ``force`` replaces earlier results there.
    progress : function of str, optional
        Called with the current step.
    bench : Bench, optional
        One that an earlier experiment has used: its finished steps need not be run again.

    Returns
    -------
    Result
        ``table`` has one row per claim (docs/reproduce.md names its columns), ``lines`` what the figure shows, ``runs``
        the data of both; the summary counts verdicts.

    Examples
    --------
    >>> found = reproduce("mechanism-toy", runs=2)
    >>> found.table["verdict"].iloc[0]
    'reproduced'
    """
    chosen = experiment_of(name)
    asked = _asked(chosen, full, runs, slots, seed)
    n_runs = asked["runs"]
    if out is not None:
        check_target(Path(out), force=force)
    used = Bench(full, n_runs, asked["seed"], asked["slots"], data) if bench is None else bench
    used.runs = n_runs
    used.tell = progress or (lambda what: None)
    began = time.perf_counter()
    found = chosen.play(used)
    meta = {
        "experiment": name,
        "place": chosen.place,
        "shows": chosen.shows,
        "full": used.full,
        "seed": used.first,
        "runs": n_runs,
        "sizes": found.sizes,
        "confidence": 0.95,
        "slots": used.slots,
        "depends_on_machine": chosen.timed,
        "versions": dict(fingerprint()),
        "seconds": round(time.perf_counter() - began, 3),
    }
    table = pd.DataFrame([row.to_dict() for row in found.rows])
    table.insert(0, "experiment", name)
    tables = {"table": table, "lines": lines_table(found.panels)} | ({} if found.runs.empty else {"runs": found.runs})
    made = Result(
        "experiment", tables, meta=meta, texts={"table.csv": table.to_csv(index=False)}, outcome=verdict_counts(table)
    )
    if out is not None:
        made.save(out, force)
    return made


@renamed(jobs="workers")
@legal
def reproduce_all(
    names: Sequence[str],
    *,
    full: bool = False,
    runs: int | None = None,
    slots: int | None = None,
    seed: Seed = 0,
    data: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    workers: Count = 1,
    executor: Where | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run several experiments; each is written, with a folder of its own in ``out``, as soon as it is finished.

    What ``out`` holds already, of the same version, seeds and sizes, is read instead of run again: an interrupted run
    goes on where it was. If ``out`` holds something else, InvalidParameterError, and nothing is run. Results are the
    same with any number of ``workers``, but for those of experiments that measure time; ``executor``, an executor or
    the address of a Dask scheduler, takes the place of processes here. ``progress`` is called with the number of
    finished experiments, of all, and the current one. Other arguments are those of `reproduce`.
    """
    chosen = [experiment_of(name) for name in names]
    asked = {each.name: _asked(each, full, runs, slots, seed) for each in chosen}
    target = None if out is None else Path(out)
    found = {} if target is None else kept(target, asked, force=force)
    missing = [name for name in asked if name not in found]
    overview = {"full": full, "seed": seed, "runs": runs, "slots": slots}

    def notify(what: str) -> None:
        if progress is not None:
            progress(len(found), len(asked), what)

    def keep() -> None:
        if target is not None:
            write_overview(target, [found[name] for name in asked if name in found], list(asked), overview)

    keep()
    given: dict[str, Any] = {"full": full, "runs": runs, "slots": slots, "seed": seed, "data": data, "force": force}
    if executor is None and (workers == 1 or len(missing) < 2):
        made = _one_by_one(missing, given, target, notify)
    else:
        made = _side_by_side(missing, given, target, notify, workers, executor)
    for each in made:
        found[each.meta["experiment"]] = each
        keep()
    return [found[name] for name in asked]


@legal
def _asked(
    chosen: Experiment,
    full: bool,
    runs: Annotated[int, Whole(2)] | None,
    slots: Annotated[int, Whole(8)] | None,
    seed: Seed,
) -> dict[str, Any]:
    """Return the sizes of an experiment, checked."""
    return {"full": bool(full), "seed": seed, "runs": chosen.runs if runs is None else runs, "slots": slots}


Tell = Callable[[str], None]


def _one_by_one(names: Sequence[str], given: dict[str, Any], target: Path | None, notify: Tell) -> Iterator[Result]:
    """Run experiments in this process; what one has compared need not be compared again."""
    bench = Bench(given["full"], SEEDS, given["seed"], given["slots"], given["data"])
    for name in names:
        out = None if target is None else target / name

        def tell(what: str, name: str = name) -> None:
            notify(f"{name}: {what}")

        yield reproduce(name, out=out, progress=tell, bench=bench, **given)


def _side_by_side(
    names: Sequence[str], given: dict[str, Any], target: Path | None, notify: Tell, workers: int, executor: Where | None
) -> Iterator[Result]:
    """Run experiments in several processes; only this one writes."""
    running = list(names)
    notify(f"{len(running)} experiments")
    with closing(run_many(partial(_elsewhere, given=given), names, workers, executor)) as each:
        for name, made in each:
            if target is not None:
                made.save(target / name, given["force"])
            running.remove(name)
            yield made
            notify(f"{len(running)} experiments, {', '.join(running[:workers])}")


_BENCHES: dict[str, Bench] = {}  # of a worker process: experiments share what they compare


def _elsewhere(name: str, given: dict[str, Any]) -> Result:
    bench = _BENCHES.setdefault("all", Bench(given["full"], SEEDS, given["seed"], given["slots"], given["data"]))
    return reproduce(name, bench=bench, **given)
