"""The tiny domains of `check_truthful`, for the mechanism of a scenario: an audit begins with them.

Every report of every owner is played against every profile of the others, with the parameters of the scenario's
mechanism and the sizes of the domain. What gains there is exact, on average over all fates. It is a counterexample for
a mechanism that promises truth ex post or in expectation; for one that promises less it is only reported.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.results.views import exact_amount
from marketsched.truthfulness.checks.tiny_domains import Factory, TinyGain, TinyPlays, largest_gain, tiny_domains
from marketsched.truthfulness.situations.reproducible import NOT_PASSED, repeats
from marketsched.worlds.workload import Workload

PROMISING = ("ex post", "in expectation")
TINY_PLAYS = 2_000


@dataclass(frozen=True, slots=True)
class TinyFound:
    """The results of the tiny domains.

    ``asked`` counts lies, ``domains`` those gone through; ``left_out`` says why others were not, each reason with the
    domains it holds for; ``breaks`` says whether the gain breaks a promise; ``drew`` whether the mechanism has drawn
    from its stream, so that what was compared is one stream of its draws.
    """

    gain: TinyGain | None = None
    asked: int = 0
    domains: int = 0
    left_out: str = ""
    breaks: bool = False
    drew: bool = False

    @property
    def words(self) -> str:
        """The result in a sentence; empty: no domain was begun."""
        if self.gain is not None:
            g = self.gain
            return (
                f"in the tiny domain {g.domain.name!r}, of which all reports were played, owner {g.owner} gains "
                f"{exact_amount(g.gain)} credits ({g.honest + g.gain:.6g} instead of {g.honest:.6g}): its truth is "
                f"{_in_words(g.truth)}; its lie {_in_words(g.report)}"
            )
        if not self.domains:
            return f"no tiny domain was played: {self.left_out}" if self.left_out else ""
        others = f"; others were not played: {self.left_out}" if self.left_out else ""
        one = " for one stream of the mechanism's draws" if self.drew else ""
        none = f"all of whose reports were played, no lie of {self.asked:,} pays{one}"
        return f"in {self.domains} tiny domains, {none}{others}"


def _in_words(sow: StatementOfWork) -> str:
    """Return a statement of a tiny domain in a line."""
    rounds = range(sow.birth, int(sow.value.last) + 1)
    worth = ", ".join(f"{sow.value(t):g} in round {t}" for t in rounds if sow.value(t) > 0) or "nothing"
    fates = ", ".join(f"{r.probability:g} for round {r.arrival} and duration {r.duration}" for r in sow.requirements)
    nodes = f"{sow.concurrency} node{'s' if sow.concurrency > 1 else ''}"
    return f"{nodes}, worth {worth}, arrival with probability {fates}"


def in_tiny_domains(scenario: Scenario, tolerance: float, most: int = TINY_PLAYS) -> TinyFound:
    """Play the mechanism of a scenario in all tiny domains.

    Parameters
    ----------
    scenario : Scenario
        Its mechanism's parameters are kept, its sizes are those of each domain.
    tolerance : float
        Credits; gains up to it do not count.
    most : int
        Plays, after which no further domain is begun; all domains together have fewer.
    """
    best: TinyGain | None = None
    asked = domains = 0
    drew = False
    reasons: defaultdict[str, list[str]] = defaultdict(list)  # domains, by what kept them from being played
    promise, played = "none", 0

    def build(*, rng: np.random.Generator, **sizes: Any) -> Mechanism:
        nonlocal promise
        empty = Workload("a tiny domain", (), birth_rounds=1, round_seconds=None, **sizes)
        made = scenario.mechanism.model_copy(update=sizes).build(empty, rng)
        promise = made.truthful
        return made

    for name, domain in tiny_domains().items():
        if played >= most:
            reasons["the plays ended"].append(f"{name} and later ones" if domains else "all")
            break
        plays = TinyPlays(build, domain)
        try:
            gain, n = largest_gain(plays, tolerance)
        except Exception as error:  # a mechanism may raise anything: sizes may not suit it
            reasons[str(error)].append(name)
            continue
        finally:
            played += plays.made
        asked, domains = asked + n, domains + 1
        drew |= plays.drew
        if gain is None or plays.drew or (best is not None and gain.gain <= best.gain):
            continue
        if repeats(partial(_again, build, gain)):
            best = gain
        else:
            reasons[f"it {NOT_PASSED}"].append(name)
    left_out = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return TinyFound(best, asked, domains, left_out, best is not None and promise in PROMISING, drew)


def _again(build: Factory, gain: TinyGain) -> float:
    """Return the gain of a lie that is played anew."""
    plays, i = TinyPlays(build, gain.domain), gain.owner
    lying = (*gain.profile[:i], gain.lie, *gain.profile[i + 1 :])
    return plays.utility(i, gain.profile[i], lying) - plays.utility(i, gain.profile[i], gain.profile)
