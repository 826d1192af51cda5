"""What every allocation core's section of a cluster scenario can do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, ClassVar

from marketsched.clusters.words import Words
from marketsched.config.policies import PolicyChoice, policy_choices
from marketsched.config.strict_yaml import Strict

if TYPE_CHECKING:
    from marketsched.clusters.world import World


class ClusterCore(Strict):
    """The section ``cluster`` of a scenario; a subclass for each core adds its parts, ``slots`` and ``policies``.

    ``core`` is its name, ``words`` what it calls things when it speaks to a reader.
    """

    words: ClassVar[Words]
    core: str

    def choices(self, tokens: Sequence[str]) -> list[PolicyChoice]:
        """Return the policies that ``tokens`` name; see `policy_choices`."""
        return policy_choices(tokens, self.core)

    @abstractmethod
    def world(self, seed: int, *, data: str | PathLike[str] | None = None) -> World:
        """Draw everything of one seed that no policy decides.

        Parameters
        ----------
        seed : int
            Root of all randomness, >= 0. One stream is spawned for each purpose (the instance, what
            arrives, what fluctuates, the policies), so that no policy and no change to one part moves another.
        data : path, optional
            Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.

        Raises
        ------
        InvalidParameterError
            If the seed is at fault, or parts do not fit each other.
        MissingDataError, TraceError
            If a part needs a trace that is not there or damaged.
        """
