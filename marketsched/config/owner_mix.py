"""How the owners of a scenario report: all truthfully, or a share of them with one simple misreport, or learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from marketsched.config.strict_yaml import Strict
from marketsched.mechanisms.ranges import Amount, Positive, Share, Whole

if TYPE_CHECKING:
    from marketsched.agents.job import Job
    from marketsched.agents.learning import Learning
    from marketsched.agents.strategies import Strategy

Rounds = Annotated[int, Whole(-10_000, 10_000)]


class TruthfulChoice(Strict):
    """No misreport."""

    kind: Literal["truthful"]

    def strategy(self) -> Strategy:
        """Return the strategy."""
        from marketsched.agents.strategies import Truthful

        return Truthful()


class ScaleValueChoice(Strict):
    """Every value is multiplied by ``factor``."""

    kind: Literal["scale-value"]
    factor: Amount

    def strategy(self) -> Strategy:
        """Return the strategy."""
        from marketsched.agents.strategies import ScaleValue

        return ScaleValue(self.factor)


class ShiftDeadlineChoice(Strict):
    """The value curve is moved ``rounds`` later (earlier, if negative)."""

    kind: Literal["shift-deadline"]
    rounds: Rounds

    def strategy(self) -> Strategy:
        """Return the strategy."""
        from marketsched.agents.strategies import ShiftDeadline

        return ShiftDeadline(self.rounds)


class ScaleDurationChoice(Strict):
    """Every duration is multiplied by ``factor``."""

    kind: Literal["scale-duration"]
    factor: Positive

    def strategy(self) -> Strategy:
        """Return the strategy."""
        from marketsched.agents.strategies import ScaleDuration

        return ScaleDuration(self.factor)


class InflateConcurrencyChoice(Strict):
    """So many ``nodes`` more are declared than needed (fewer, if negative)."""

    kind: Literal["inflate-concurrency"]
    nodes: Rounds

    def strategy(self) -> Strategy:
        """Return the strategy."""
        from marketsched.agents.strategies import InflateConcurrency

        return InflateConcurrency(self.nodes)


class DelaySubmissionChoice(Strict):
    """The statement is submitted ``delay`` rounds after birth."""

    kind: Literal["delay-submission"]
    delay: Annotated[int, Whole(0, 10_000)]

    def strategy(self) -> Strategy:
        """Return the strategy."""
        from marketsched.agents.strategies import DelaySubmission

        return DelaySubmission(self.delay)


AtBirth = Annotated[
    ScaleValueChoice | ShiftDeadlineChoice | ScaleDurationChoice | InflateConcurrencyChoice, Field(discriminator="kind")
]


def _shades() -> list[AtBirth]:
    return [ScaleValueChoice(kind="scale-value", factor=factor) for factor in (0.2, 0.4, 0.6, 0.8)]


class LearningChoice(Strict):
    """Each of the owners learns, job after job, whether the truth or one of the lies of ``menu`` pays best."""

    kind: Literal["learning"]
    learner: Literal["exp3", "ucb1"] = "exp3"
    menu: Annotated[list[AtBirth], Field(min_length=1)] = Field(default_factory=_shades)

    def owners(self, names: Sequence[str], rng: np.random.Generator) -> dict[str, Learning]:
        """Return a learning owner for each name, with a stream of its own."""
        from marketsched.agents.learning import Learning, Menu

        lies = [(choice, choice.model_dump(exclude={"kind"})) for choice in self.menu]
        menu = Menu({f"{c.kind} {' '.join(map(str, told.values()))}": c.strategy() for c, told in lies})
        return {
            name: Learning(menu, self.learner, rng=own) for name, own in zip(names, rng.spawn(len(names)), strict=True)
        }


Choice = Annotated[
    TruthfulChoice
    | ScaleValueChoice
    | ShiftDeadlineChoice
    | ScaleDurationChoice
    | InflateConcurrencyChoice
    | DelaySubmissionChoice
    | LearningChoice,
    Field(discriminator="kind"),
]


class OwnerMix(Strict):
    """A share of the owners misreports, all in the same way (or learns to); the others report truthfully."""

    misreporting: Share = 0.0
    strategy: Choice = TruthfulChoice(kind="truthful")

    def strategies(self, owners: Sequence[str], rng: np.random.Generator) -> Callable[[Job], Strategy]:
        """Return who does what.

        Parameters
        ----------
        owners : sequence of str
            All owners, each once; ``round(misreporting * len(owners))`` of them are drawn.
        rng : Generator
            Draws who misreports.
        """
        from marketsched.agents.strategies import Truthful

        order = rng.permutation(len(owners))
        chosen = {owners[i] for i in order[: round(self.misreporting * len(owners))]}
        honest = Truthful()
        if isinstance(self.strategy, LearningChoice):
            minds = self.strategy.owners(owners, rng)
            return lambda job: minds[job.owner].next_job() if job.owner in chosen else honest
        other = self.strategy.strategy()
        return lambda job: other if job.owner in chosen else honest
