"""Play several markets side by side, each on a worker that writes its tables and keeps nothing of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from marketsched.config.strict_yaml import parse_yaml, read_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Seed, legal
from marketsched.play.fingerprint import difference, fingerprint
from marketsched.play.parallel import TimeLeft, Where, run_many
from marketsched.play.running import Progress, run
from marketsched.results.output import META, check_target
from marketsched.results.result import SUMMARY, Result, manifest
from marketsched.sites.description import ALL, Sites

FIGURES = ("rounds", "jobs", "completed", "welfare", "revenue")
SCENARIO = "scenario.yaml"


@legal
def run_sites(
    sites: Sites | str | PathLike[str] | Mapping[str, Any],
    out: str | PathLike[str],
    seed: Seed = 0,
    *,
    jobs: Count = 1,
    executor: Where | None = None,
    data: str | PathLike[str] | None = None,
    changes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Run the market of every site once; each leaves a folder of its own in ``out``.

    Sites that ``out`` holds already, of the same scenario, seed and code, are not run again: interrupted work
    goes on where it stopped. One market's tables are in memory at a time in each process.

    Parameters
    ----------
    sites : Sites, path or mapping
        A scenario for each site; see `Sites`.
    out : path
        A new folder, or that of the same sites.
    seed : int
        Root of all randomness; `Sites.seed_of` makes each site's, with which ``marketsched run`` gives the same run.
    jobs : int
        Processes that share the sites. Results do not depend on it.
    executor : str or concurrent.futures.Executor, optional
        In place of processes here: the address of a Dask scheduler, whose workers must see ``out``, or an executor.
    data : path, optional
        Folder of recorded traces.
    changes : sequence of str
        ``KEY=VALUE``, made to every scenario.
    progress : function of (int, int, str), optional
        Called with how many sites are finished, how many there are, and how long the rest may take.

    Returns
    -------
    Result
        Of kind ``sites``. The summary has one row per site: ``site, scenario, mechanism, seed``, ``rounds``, ``jobs``,
        ``completed``, ``welfare``, ``revenue`` and ``bound`` (on the welfare, credits). It is saved as ``out``/all.

    Raises
    ------
    InvalidParameterError, UnknownNameError
        If a scenario, the seed or the folder is at fault: before anything is run.
    OSError
        If the disk does not take the tables.

    Examples
    --------
    >>> import tempfile
    >>> halls = {"name": "two halls", "sites": {"north": "stochastic-mix", "south": "stochastic-mix"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run_sites(halls, folder, changes=["mechanism.oracle.samples=20"])
    >>> found.summary["site"].tolist(), found.summary["seed"].nunique()
    (['north', 'south'], 2)
    """
    described, beside = _described(sites)
    scenarios = described.scenarios(beside, list(changes))
    target = Path(out).absolute()
    tasks = [(site, scenario.to_yaml(), described.seed_of(site, seed)) for site, scenario in scenarios.items()]
    finished = [site for site, text, own in tasks if _is_there(target / site, text, own)]
    missing = [task for task in tasks if task[0] not in finished]
    began, left = time.perf_counter(), TimeLeft()
    tell = progress or (lambda done, total, what: None)
    tell(len(finished), len(tasks), "starting")
    play = partial(_play, target=str(target), data=None if data is None else str(data))
    made = 0
    with closing(run_many(play, missing, jobs, executor)) as stream:
        for (site, _, _), _ in stream:
            made += 1
            tell(len(finished) + made, len(tasks), f"{site} is finished, {left.words(made, len(missing))}")
    rows = [_row(site, target / site) for site, *_ in tasks]
    meta = {
        "name": described.name,
        "seed": seed,
        "sites": [*scenarios],
        "versions": dict(fingerprint()),
        "seconds": round(time.perf_counter() - began, 3),
        "complete": True,
    }
    found = Result("sites", {}, pd.DataFrame(rows), meta)
    found.save(target / ALL, force=True)
    return found


def _described(sites: Sites | str | PathLike[str] | Mapping[str, Any]) -> tuple[Sites, Path | None]:
    if isinstance(sites, Sites):
        return sites, None
    return (Sites.from_dict(sites), None) if isinstance(sites, Mapping) else Sites.load(sites)


def _is_there(folder: Path, scenario: str, seed: int) -> bool:
    """Say whether a site is finished; refuse a folder of something else."""
    if not (folder / META).is_file():
        check_target(folder)
        return False
    meta = manifest(folder)
    same = meta.get("seed") == seed and (folder / SCENARIO).read_text(encoding="utf-8") == scenario
    differs = difference(fingerprint(), meta.get("code", {})) if same else "another scenario or seed"
    if differs is not None:
        raise InvalidParameterError(f"{folder} has {differs}: expected a new folder for these sites")
    return bool(meta["complete"])


def _play(task: tuple[str, str, int], target: str, data: str | None) -> None:
    """Run one site where this is called, and write what it leaves."""
    site, scenario, seed = task
    found = run(parse_yaml(scenario, site), seed, data=data)
    found.meta["code"] = dict(fingerprint())
    found.save(Path(target) / site)


def _row(site: str, folder: Path) -> dict[str, Any]:
    """Return the figures of a finished site; its tables stay on the disk."""
    scenario = read_yaml(folder / SCENARIO)
    summary = json.loads((folder / f"{SUMMARY}.json").read_text(encoding="utf-8"))
    about = {"site": site, "scenario": scenario["name"], "mechanism": scenario["mechanism"]["name"]}
    figures = {name: summary[name] for name in FIGURES}
    return {**about, "seed": manifest(folder)["seed"], **figures, "bound": summary.get("bounds", {}).get("dual")}
