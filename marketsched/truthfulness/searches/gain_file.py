"""A lie that pays, as one file: the scenario, and all data to play the lie again.

The gain is exact in the market at hand, or one that was confirmed on fresh worlds. The file is a scenario that
``marketsched run FILE --seed SEED`` plays with true reports; the owner, the lie, the seeds and the gain are in comment
lines that begin with ``#|``, which `replay_gain` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marketsched.agents.lies import misreport_from
from marketsched.config.scenario import Scenario
from marketsched.config.strict_yaml import dump_yaml, parse_yaml
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite
from marketsched.results.views import exact_amount, shown_whole
from marketsched.truthfulness.searches.evaluation import Budget, Candidate, prepared
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.screened import Gain
from marketsched.truthfulness.searches.screening import over_law, settled
from marketsched.truthfulness.searches.trials import SCORE, Trial, Truth
from marketsched.truthfulness.sentences import sentence
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

MARK = "#| "  # before every line of what is no scenario
KEYS = ("job", "misreport", "seed", "gain", "over_own_law")
ON_WORLDS = ("job", "misreport", "seed", "gain", "worlds", "seed_of_worlds")


class ReplayedGain(NamedTuple):
    """A file of an exact gain, played again: the recorded gain, and the gain now, credits.

    ``over_own_law`` is a pair of the two as well; None where the file has no such figure.
    """

    recorded: float
    again: float
    over_own_law: tuple[float, float] | None

    @property
    def same(self) -> bool:
        """True if all figures equal those of the file."""
        return self.recorded == self.again and (self.over_own_law is None or len(set(self.over_own_law)) == 1)


def gain_sentence(gain: Gain) -> str:
    """Return in words a lie in the market at hand and its exact gain."""
    truth = gain.owner.truthful.utility
    brings = "nothing" if abs(truth) <= 1e-9 * (1 + abs(gain.gain)) else f"{truth:.6g}"
    name = f"in this market {gain.owner.name} {gain.words}"
    luck = f"{_exactly(gain.gain)} credits"
    if gain.own_law is None:
        return f"{name} and gains {luck} (the truth earns it {brings}), with all random outcomes fixed"
    if gain.owner.certain:
        return f"{name} and gains {luck} (the truth earns it {brings}): its law has one case, and all else is fixed"
    stream = ", for one stream of the mechanism's draws" if gain.drew else ""
    return (
        f"{name} and gains {_exactly(gain.own_law)} credits on average over its own law, all else fixed{stream} "
        f"({luck} with the outcome of this run, where the truth earns it {brings})"
    )


def _exactly(x: float) -> str:
    return f"{'exactly' if shown_whole(x) else 'about'} {exact_amount(x)}"


def claim_text(scenario: Scenario, lie: Deviation, run: Mapping[str, Any]) -> str:
    """Return the file of a lie that was confirmed on fresh worlds; ``run`` has the audit's ``seed``."""
    record = {
        "job": lie.job,
        "misreport": lie.misreport.data(),
        "seed": run["seed"],
        "gain": lie.gain_mean,
        "worlds": lie.n_fresh,
        "seed_of_worlds": lie.seed,
    }
    return _text(scenario, sentence(lie), record)


def gain_text(scenario: Scenario, gain: Gain) -> str:
    """Return the file of a gain in a market of this scenario, with the mechanism under which the lie gained."""
    record = {
        "job": gain.owner.name,
        "misreport": gain.misreport.data(),
        "seed": gain.owner.market.seed,
        "gain": gain.gain,
        "over_own_law": gain.own_law,
    }
    return _text(scenario, gain_sentence(gain), record)


def _text(scenario: Scenario, words: str, record: Mapping[str, Any]) -> str:
    head = [f"# {words}.", "# The scenario below has all owners report truthfully.", "#"]
    lines = [MARK + line for line in dump_yaml(record).splitlines()]
    return "\n".join([*head, *lines, ""]) + scenario.to_yaml()


def replay_gain(path: str | PathLike[str], *, data: str | PathLike[str] | None = None) -> ReplayedGain:
    """Play the lie of a file again, in the same market.

    Parameters
    ----------
    path : path
        Of an ``exact-LABEL-JOB.yaml`` or a ``lie-LABEL-JOB.yaml`` that an audit has saved.
    data : path, optional
        Folder of recorded traces.

    Raises
    ------
    InvalidParameterError
        If the file is none of a gain, or the market has no such job.
    MechanismFault
        If the mechanism is at fault.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> replay_gain("runs/audit-1/exact-pay-as-bid-build-22.yaml").same  # doctest: +SKIP
    True
    """
    text = Path(path).read_text(encoding="utf-8")
    marked = [line[len(MARK) :] for line in text.splitlines() if line.startswith(MARK)]
    record = parse_yaml("\n".join(marked), str(path)) if marked else None
    if not isinstance(record, Mapping) or set(record) not in (set(KEYS), set(ON_WORLDS)):
        raise InvalidParameterError(f"{path}: expected lines that begin with {MARK!r} and say {', '.join(KEYS)}")
    recorded = Finite("(-inf, inf)").check(f"{path}: gain", record["gain"])
    scenario = Scenario.load(path)
    market = MarketAtHand.of(scenario, record["seed"], data)
    owners = market.owners([record["job"]])
    if not owners:
        raise InvalidParameterError(place=f"{path}: job", value=record["job"], legal="a job of the market")
    (owner,) = owners
    made = prepared(owner, misreport_from(record["misreport"]))
    if not isinstance(made, Candidate):
        raise InvalidParameterError(place="misreport", value=record["misreport"], legal="one that this market takes")
    if "worlds" in record:
        trial, budget = Trial(Truth(owner, record["seed_of_worlds"]), made, 0.0), Budget(None, None)
        gains = [trial.gain(SCORE, place, budget) for place in range(record["worlds"])]
        return ReplayedGain(recorded, float(np.mean(gains)), None)
    again = settled(owner.play(made.conduct), owner.truthful)
    law = record["over_own_law"]
    mean = None if law is None else over_law(owner, made.conduct)[0]
    return ReplayedGain(recorded, again, None if law is None or mean is None else (float(law), mean))
