"""One job of the market with several ways to run, as a statement and a held job of Slurm for each way.

A way is written as the options of ``sbatch`` that say what it takes of a node: ``--nodes=2 --cpus-per-task=4 --mem=8G
--gres=gpu:v100:2 --time=3:00:00``. Two options are the market's alone: ``--on=a100=2:00:00,v100=3:00:00`` names kinds
of nodes, with the time on each, and ``--worth=0.9`` says what the result is worth, compared with the others.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from marketsched.live.slurm import Slurm, SlurmError
from marketsched.live.slurm_actions import ROUND_S
from marketsched.live.slurm_demand import gpus_in, mebibytes
from marketsched.live.slurm_shapes import CPU, GPU, MEMORY, MIB_OF_UNIT
from marketsched.live.slurm_sides import comment_of
from marketsched.mechanisms.errors import InvalidReportError, MarketschedError, placed

if TYPE_CHECKING:
    from marketsched.live.client import LiveClient  # the extra `live`

TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
MINUTE, HOUR, DAY = 60, 3600, 86400
PATIENCE_S = 15.0  # in which the bridge writes the plugin's table
LEGAL = "--nodes, --ntasks-per-node, --cpus-per-task, --mem, --gres, --constraint, --time, --on or --worth"


@dataclass(frozen=True)
class Way:
    """One way to run."""

    shape: dict[str, Any]  # of the statement
    options: tuple[str, ...]  # for sbatch


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidReportError(message, legal=LEGAL)


def way_of(text: str, market: Mapping[str, Any]) -> Way:
    """Return the way that a text of options of sbatch describes, on the cluster of ``market``: ``GET /v1/market``.

    Raises InvalidReportError if an option is unknown, the market's kinds are not given, or no kind of node is meant.
    """
    given = _parsed(text)
    seconds = float(market["clock"]["round_seconds"] or ROUND_S)
    sold = market["cluster"]["resources"]
    gpus = gpus_in(given.gres or "")
    each: dict[str, float] = {CPU: given.cpus_per_task * given.ntasks_per_node, GPU: sum(gpus.values())}
    if given.mem is None and MEMORY in sold:
        raise InvalidReportError("--mem is missing", legal="memory of a node, as the market sells it: --mem=8G")
    each[MEMORY] = _memory(given.mem or "0") / MIB_OF_UNIT
    for name, amount in each.items():
        if amount and name not in sold:
            raise InvalidReportError(place=name, value=amount, legal=f"what the market sells: {', '.join(sold)}")
    each = {name: each[name] for name in sold if each[name]}
    times = _times(given, gpus, market["cluster"])
    on = {kind: max(1, math.ceil(spent / seconds)) for kind, spent in times.items()}
    shape: dict[str, Any] = {"each": each, "on": on}
    if given.nodes > 1:
        shape |= {"tasks": given.nodes, "per_node": 1}
    if given.worth is not None:
        shape["worth"] = given.worth
    minutes = math.ceil(max(on.values()) * seconds / MINUTE)
    options = [f"--nodes={given.nodes}", f"--ntasks-per-node={given.ntasks_per_node}", f"--time={minutes}"]
    options.append(f"--cpus-per-task={given.cpus_per_task}")
    named = {"mem": given.mem, "gres": given.gres, "constraint": given.constraint}
    return Way(shape, (*options, *(f"--{name}={value}" for name, value in named.items() if value is not None)))


def ways_of(statement: Mapping[str, Any], texts: Sequence[str], market: Mapping[str, Any]) -> list[Way]:
    """Return the ways that texts of options describe, for a statement without shapes; errors as of `way_of`."""
    if "cluster" not in market:
        raise InvalidReportError("the market sells identical nodes", legal="one of a cluster (docs/resources.md)")
    if found := [key for key in ("shapes", "concurrency", "requirements") if key in statement]:
        raise InvalidReportError(place=found[0], legal="none: value and arrival, as --shape has the rest")
    ways = []
    for i, text in enumerate(texts):
        with placed(f"--shape {i}"):
            ways.append(way_of(text, market))
    return ways


def submit_ways(
    statement: Mapping[str, Any],
    ways: Sequence[Way],
    script: Sequence[str],
    market: LiveClient,
    slurm: Slurm,
    *,
    name: str | None = None,
    options: Sequence[str] = (),
) -> tuple[str, list[int]]:
    """Submit a statement with the shapes of these ways, and a held job of Slurm for each; return the job, and theirs.

    ``script`` is the path of the script, and what it is given; ``options`` are for every sbatch; ``name`` is the job's,
    behind the owner's. Raises MarketschedError if the market refuses the statement, or Slurm a job: then all of them
    are taken back, at the no-show fee.
    """
    job = str(market.submit({**statement, "shapes": [way.shape for way in ways]}, name=name)["job"])
    numbers: list[int] = []
    try:
        for i, way in enumerate(ways):
            command = ["sbatch", "--parsable", "--hold", f"--comment={comment_of(job, i)}", *way.options, *options]
            numbers.append(_submitted(slurm, [*command, *script]))
    except MarketschedError:
        for number in numbers:
            slurm.cancel(number)
        market.withdraw(job)
        raise
    return job, numbers


def _submitted(slurm: Slurm, command: Sequence[str]) -> int:
    """Submit a job, once the bridge has announced it to the plugin."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return int(slurm.run(*command).split(";")[0])
        except SlurmError as error:
            if "not announced" not in str(error) and "its table yet" not in str(error):
                raise
            if time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def _parsed(text: str) -> argparse.Namespace:
    parser = _Options(add_help=False, allow_abbrev=False, prog="--shape")
    parser.add_argument("-N", "--nodes", type=int, default=1)
    parser.add_argument("--ntasks-per-node", type=int, default=1)
    parser.add_argument("-c", "--cpus-per-task", type=int, default=1)
    for names in (["--mem"], ["--gres"], ["-C", "--constraint"], ["-t", "--time"], ["--on"]):
        parser.add_argument(*names)
    parser.add_argument("--worth", type=float)
    try:
        given = parser.parse_args(shlex.split(text))
    except ValueError as error:  # quotes that are not closed
        raise InvalidReportError(f"{text!r}: {error}", legal=LEGAL) from None
    for option in ("nodes", "ntasks_per_node", "cpus_per_task"):
        if getattr(given, option) < 1:
            raise InvalidReportError(place=option, value=getattr(given, option), legal="at least 1")
    return given


def _times(given: argparse.Namespace, gpus: Mapping[str, int], cluster: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds on each kind of node that is meant."""
    kinds = list(dict.fromkeys(group["kind"] for group in cluster["groups"]))
    wanted: dict[str, str | None] = {}
    if given.on is not None:
        wanted = {kind: limit or None for kind, _, limit in (part.partition("=") for part in given.on.split(","))}
    elif any(kind in kinds for kind in gpus):
        wanted = {kind: None for kind in gpus}
    elif given.constraint is not None:
        wanted = {word: None for word in re.findall(r"[^\[\]|&, ]+", given.constraint) if word in kinds}
    if not wanted or any(kind not in kinds for kind in wanted):
        said = given.on or ", ".join(wanted) or None
        legal = f"a type of GPU, a constraint or --on that names kinds of nodes: {', '.join(kinds)}"
        raise InvalidReportError(place="kinds of nodes", value=said, legal=legal)
    found = {}
    for kind, limit in wanted.items():
        if (limit or given.time) is None:
            raise InvalidReportError(f"--time is missing, for {kind}", legal="such as --time=2:00:00")
        found[kind] = seconds_in(limit or given.time)
    return found


def seconds_in(text: str) -> float:
    """Return a time limit as Slurm reads it, in seconds; InvalidReportError if it is none.

    Examples
    --------
    >>> seconds_in("90"), seconds_in("1:30"), seconds_in("2:00:00"), seconds_in("1-12"), seconds_in("1-0:30")
    (5400.0, 90.0, 7200.0, 129600.0, 88200.0)
    """
    found = TIME.fullmatch(text.strip())
    if found is None:
        raise InvalidReportError(place="--time", value=text, legal="minutes, H:MM:SS or D-HH:MM")
    days, *rest = found.groups()
    numbers = [int(each) for each in rest if each is not None]
    units = [HOUR, MINUTE, 1] if days is not None or len(numbers) == 3 else [MINUTE, 1]
    total = int(days or 0) * DAY + sum(n * unit for n, unit in zip(numbers, units, strict=False))
    if total <= 0:
        raise InvalidReportError(place="--time", value=text, legal="longer than 0")
    return float(total)


def _memory(text: str) -> float:
    try:
        return mebibytes(text)
    except ValueError:
        raise InvalidReportError(place="--mem", value=text, legal="such as 8G") from None
