"""How the owners of a scenario report: all truthfully, or a share of them with one simple lie, or learning.

What can be chosen are the lies of `marketsched.agents.lies` that have a report for every truth; their numbers
are the keys of a section, with the names and ranges that the class of the lie gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, create_model

from marketsched.agents.job import Job
from marketsched.agents.learning import Learning, ReportMenu
from marketsched.agents.lies import KINDS, Misreport, Strategy, Truthful
from marketsched.agents.lies.base import Number
from marketsched.config.strict_yaml import Strict
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Share

MOST = 10_000  # rounds or nodes in a file: each of thousands of jobs may keep a table as long


class _LieChoice(Strict):
    """One lie; a subclass is made for each, under its kind."""

    kind: str

    def strategy(self) -> Misreport:
        return KINDS[self.kind].read(self.model_dump(exclude={"kind"}))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by kind: the class is made again where it is read."""
        return _again, (self.model_dump(),)


def _choice(kind: str) -> type[_LieChoice]:
    keys: dict[str, Any] = {
        own.name: (Annotated[Any, BeforeValidator(partial(_checked, own))], ...)
        for own in KINDS[kind].numbers().values()
    }
    return create_model(f"LieChoice[{kind}]", __base__=_LieChoice, **{"kind": (Literal[kind], ...), **keys})


def _again(keys: dict[str, Any]) -> _LieChoice:
    return CHOICES[keys["kind"]].model_validate(keys)


def _checked(own: Number, x: object) -> float:
    if isinstance(own.legal, tuple):
        own = own._replace(legal=(max(own.legal[0], -MOST), MOST))
    try:
        return own.checked(own.name, x)
    except InvalidParameterError as error:
        raise ValueError(error.legal) from None  # the place is that of the key in the file


HONEST = Truthful()
LIES = {lie.kind: lie for lie in KINDS.values() if lie.label}  # what a scenario can choose from
CHOICES = {kind: _choice(kind) for kind, lie in KINDS.items() if lie.label or kind == Truthful.kind}
_AT_BIRTH = tuple(CHOICES[kind] for kind, lie in KINDS.items() if lie.label and lie.inside_model)

if TYPE_CHECKING:
    AtBirth = _LieChoice
else:
    AtBirth = Annotated[reduce(or_, _AT_BIRTH), Field(discriminator="kind")]


def _shades() -> list[AtBirth]:
    shade = CHOICES["scale-value"]
    return [shade.model_validate({"kind": "scale-value", "factor": factor}) for factor in (0.2, 0.4, 0.6, 0.8)]


class _LearningChoice(Strict):
    """Each of the owners learns, job after job, whether the truth or one of the lies of ``menu`` pays best."""

    kind: Literal["learning"]
    learner: Literal["exp3", "ucb1"] = "exp3"
    menu: Annotated[list[AtBirth], Field(min_length=1)] = Field(default_factory=_shades)

    def owners(self, names: Sequence[str], rng: np.random.Generator) -> dict[str, Learning]:
        """Return a learning owner for each name, with a stream of its own."""
        lies = [(choice, choice.model_dump(exclude={"kind"})) for choice in self.menu]
        menu = ReportMenu({f"{c.kind} {' '.join(map(str, keys.values()))}": c.strategy() for c, keys in lies})
        return {
            name: Learning(menu, self.learner, rng=own) for name, own in zip(names, rng.spawn(len(names)), strict=True)
        }


if TYPE_CHECKING:
    Choice = _LieChoice | _LearningChoice
else:
    Choice = Annotated[reduce(or_, CHOICES.values()) | _LearningChoice, Field(discriminator="kind")]


class OwnerMix(Strict):
    """A share of the owners misreports, all in the same way (or learns to); the others report truthfully."""

    misreporting: Share = 0.0
    strategy: Choice = CHOICES["truthful"](kind="truthful")

    def strategies(self, owners: Sequence[str], rng: np.random.Generator) -> Strategy | Callable[[Job], Strategy]:
        """Return who does what: one strategy, if nobody misreports.

        Parameters
        ----------
        owners : sequence of str
            All owners, each once; ``round(misreporting * len(owners))`` of them are drawn.
        rng : Generator
            Draws who misreports.
        """
        order = rng.permutation(len(owners))
        chosen = {owners[i] for i in order[: round(self.misreporting * len(owners))]}
        if not chosen:
            return HONEST
        if isinstance(self.strategy, _LearningChoice):
            minds = self.strategy.owners(owners, rng)
            return lambda job: minds[job.owner].next_job() if job.owner in chosen else HONEST
        other = self.strategy.strategy()
        return lambda job: other if job.owner in chosen else HONEST
