"""The section ``cluster`` of a scenario: the base of those of all allocation cores, and which one is read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import PydanticCustomError

from marketsched.config.strict_yaml import Strict
from marketsched.cores import worlds
from marketsched.cores.core import CORES, DEFAULT, Core
from marketsched.cores.sections.policies import PolicyChoice, policy_choices
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.randomness import checked_seed

Data = str | PathLike[str] | None
PARTS = ("instance", "arrivals", "machines", "jobs")  # which have a kind


class ClusterCore(Strict):
    """The section ``cluster`` of a scenario; a subclass for each ``core`` adds parts, ``slots`` and ``policies``."""

    if TYPE_CHECKING:  # fields of every subclass, where they stand in the order of a file
        core: str
        slots: int
        policies: tuple[str, ...]

    @property
    def about(self) -> Core:
        """The description of its core."""
        return CORES[self.core]

    def choices(self, tokens: Sequence[str] | None = None) -> list[PolicyChoice]:
        """Return the policies that ``tokens`` name (None: those of the scenario); see `policy_choices`."""
        return policy_choices(self.policies if tokens is None else tokens, self.core)

    def world(self, seed: int, *, data: Data = None) -> worlds.world.CoreWorld:
        """Draw everything of one seed that no policy decides.

        ``seed`` is the root of all randomness: one stream is spawned for each purpose (the instance, what arrives, what
        fluctuates, the policies), so that no policy and no change to one part moves another. ``data`` is the folder of
        recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
        """
        check_memory(f"tables of {self.slots} slots", 200.0 * self.slots, "fewer cluster.slots")  # some 20 columns
        return self._world(np.random.default_rng(np.random.SeedSequence(checked_seed(seed))).spawn(4), data)

    def ordered(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return this section as plain data without missing values, the kind of each part first."""
        kinds = {part: {"kind": data[part]["kind"], **data[part]} for part in PARTS if part in data}
        return {key: kinds.get(key, value) for key, value in data.items() if value is not None}

    @abstractmethod
    def _world(self, streams: Sequence[np.random.Generator], data: Data) -> worlds.world.CoreWorld:
        """Build the world from four streams of random numbers, one for each purpose."""


def read_cluster(x: object) -> ClusterCore:
    """Return the section that a mapping describes, with the class of its core; to be called in a validation."""
    core = x.get("core", DEFAULT) if isinstance(x, Mapping) else getattr(x, "core", None)
    if not isinstance(core, str) or core not in CORES:
        if not isinstance(x, Mapping):
            raise PydanticCustomError("model_type", "a table of keys")
        legal = {"discriminator": "core", "tag": core, "expected_tags": ", ".join(map(repr, CORES))}
        raise PydanticCustomError("union_tag_invalid", "which", legal)
    module, _, name = CORES[core].section.partition(":")
    model: Any = getattr(import_module(module), name)
    section: ClusterCore = model.model_validate({"core": core, **x} if isinstance(x, Mapping) else x)
    return section
