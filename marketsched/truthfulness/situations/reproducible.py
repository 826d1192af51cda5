"""Same seed, same outcome: asked before any lie is played, because no gain is exact under a rule that breaks it.

The truth is played several times, each time by a mechanism that was built anew from the same seed. What tells a rule
that draws with a generator that was not passed to it: another outcome, or a global generator that has moved (of the
module `random`, or of NumPy). Once the clock is set forward meanwhile. Some plays give all jobs names that hash
otherwise, as strings do in another process: under a rule that goes through a set of names, they end differently.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.from_file import is_in_file
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.short_ways import trusted

JOBS = 400  # over all plays of one kind: small markets are played more often
MOST, FEWEST = 6, 2  # plays of one kind
LATER = 12_345.67  # seconds, by which the clock is set forward
REPEATED = 4  # plays of a lie that is to count, and of its truth

NOT_PASSED = "draws with a generator that was not passed"
Outcome = tuple[tuple[float, float, int | None], ...]


def not_reproducible(market: MarketAtHand) -> str:
    """Return why two plays of the truth with one seed end differently; empty: they do not.

    A mechanism that fails under the truth is not looked at here: whoever plays the truth next names the fault. Nor is
    one of the package alone: tests ask this of it, and a play from any owner's turn has to end as the whole run did.
    """
    if trusted(market.setup.mechanism):
        return ""
    jobs = market.setup.jobs
    plays = int(np.clip(JOBS // max(1, len(jobs)), FEWEST, MOST))
    try:
        first = _outcome(market)
    except MarketschedError:
        return ""
    for k in range(1, plays):
        try:
            with _moved_generators() as drawn_from, _clock_set_forward() if k == plays - 1 else nullcontext():
                again = _outcome(_twin(market, jobs))
        except MarketschedError as error:
            return f"{NOT_PASSED}, or reads a clock: played again with the same seed, it fails: {error}"
        if again != first:
            return f"{NOT_PASSED}, or reads a clock: {_difference(market, first, again)}"
        if drawn_from:
            return f"{NOT_PASSED}, {drawn_from[0]}"
    return _by_hash(market, plays)


def why_not(scenario: Scenario, seed: int, data: str | PathLike[str] | None) -> str:
    """Return why plays of one seed end differently, here or in another process; empty: they do not."""
    return not_reproducible(MarketAtHand.of(scenario, seed, data)) or differs_by_process(scenario, seed, data)


def differs_by_process(scenario: Scenario, seed: int, data: str | PathLike[str] | None) -> str:
    """Return that two processes, in which strings hash otherwise, play one seed differently; empty: they do not.

    Asked of a mechanism from a file, which another process can load: a set of names that it makes of its own goes
    through in the order of hashes, and no play in this process can tell.
    """
    if not is_in_file(scenario.mechanism.name):
        return ""
    from joblib.externals.loky import ProcessPoolExecutor  # some .2 s, for mechanisms from a file alone

    pools = [ProcessPoolExecutor(1, env={"PYTHONHASHSEED": str(salt)}) for salt in (1, 2)]
    try:
        one, other = (each.result() for each in [pool.submit(_outcome_here, scenario, seed, data) for pool in pools])
    except MarketschedError:  # whoever plays the truth next names the fault
        return ""
    finally:
        for pool in pools:
            pool.shutdown(kill_workers=True)
    if one == other:
        return ""
    what = _difference(MarketAtHand.of(scenario, seed, data), one, other)
    return f"goes through a set in the order of hashes, which each process draws anew: {what}"


def _outcome_here(scenario: Scenario, seed: int, data: str | PathLike[str] | None) -> Outcome:
    return _outcome(MarketAtHand.of(scenario, seed, data))


def repeats(play: Callable[[], Any]) -> bool:
    """Tell whether several plays end the same; ``play`` makes one."""
    first = play()
    return all(play() == first for _ in range(REPEATED))


def _by_hash(market: MarketAtHand, plays: int) -> str:
    """Return that outcomes depend on how names hash; empty: they do not.

    Plays are compared with each other, not with the play of plain names: a rule that knows accounts by name, or makes
    other names of those it is given, does not find them again under any of these.
    """
    found: list[Outcome] = []
    for salt in range(1, plays + 1):
        renamed = [replace(job, name=_Salted.of(job.name, salt), owner=_Salted.of(job.owner, salt))
                   for job in market.setup.jobs]  # fmt: skip
        try:
            found.append(_outcome(_twin(market, renamed)))
        except Exception:  # it takes no such names
            return ""
    differing = next((other for other in found if other != found[0]), None)
    if differing is None:
        return ""
    return f"goes through names in the order of their hashes: {_difference(market, found[0], differing)}"


class _Salted(str):
    """A name that is equal to itself as a plain string, and hashes otherwise."""

    __slots__ = ("salt",)
    salt: int

    @classmethod
    def of(cls, name: Any, salt: int) -> Any:
        if not isinstance(name, str):
            return name
        made = cls(name)
        made.salt = salt
        return made

    def __hash__(self) -> int:
        return hash((self.salt, str.__hash__(self)))

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return str.__ne__(self, other)


def _twin(market: MarketAtHand, jobs: list[Job] | Any) -> MarketAtHand:
    """Return the same market, whose mechanism will be built anew."""
    sizes = {name: getattr(market.setup, name) for name in ("capacity", "horizon", "max_delay", "resubmit")}
    return MarketAtHand(market.factory, jobs, **sizes, seed=market.seed)


def _outcome(market: MarketAtHand) -> Outcome:
    return tuple((played.value, played.payment, played.completion) for played in market.outcomes.values())


def _difference(market: MarketAtHand, one: Outcome, other: Outcome) -> str:
    names = (job.name for job in market.setup.jobs)
    name, a, b = next((name, a, b) for name, a, b in zip(names, one, other, strict=True) if a != b)
    what = [f"pays {paid:.6g} and {'does not complete' if done is None else f'completes in round {done}'}"
            for _, paid, done in (a, b)]  # fmt: skip
    return f"two plays of the truth with one seed end differently; {name} {what[0]}, then {what[1]}"


@contextmanager
def _moved_generators() -> Iterator[list[str]]:
    """Move the global generators on, and list after the play those that it has touched; then they are as they were."""
    touched: list[str] = []
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.random()
    np.random.random()  # noqa: NPY002
    moved = random.getstate(), _of_numpy()
    try:
        yield touched
        if random.getstate() != moved[0]:
            touched.append("with that of the module random")
        if _of_numpy() != moved[1]:
            touched.append("with the global one of numpy.random")
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _of_numpy() -> tuple[Any, ...]:
    """Return the state of NumPy's global generator, to be compared."""
    state: Any = np.random.get_state()  # noqa: NPY002
    return (state[1].tobytes(), *state[2:])


@contextmanager
def _clock_set_forward() -> Iterator[None]:
    """Let `time.time` and `time.time_ns` tell another time; those of waiting and measuring go on as they are."""
    now, now_ns = time.time, time.time_ns
    time.time, time.time_ns = lambda: now() + LATER, lambda: now_ns() + int(LATER * 1e9)
    try:
        yield
    finally:
        time.time, time.time_ns = now, now_ns
