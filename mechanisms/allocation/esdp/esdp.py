"""ESDP: learn fluctuating utilities of channels, decide by budgeted dynamic programs (Algorithm 1 of the paper).

In slot t every channel has an estimated mean and a variance that shrinks with use. ESDP looks for the
selection with the largest *means . x + sqrt(variances . x)*: means and variances are scaled and rounded up to whole
numbers, ESDP (16)-(18), for every budget s of scaled means the largest scaled variance is found, ESDP (20), all at once
by `budgeted`, and the budget with the largest ``s + sqrt(best[s])`` wins, ESDP (21).

The paper solves over *all* ports and then switches off channels whose port has no job (Algorithm 1,
lines 10-16): ``arrivals="zero"``. ``arrivals="plan"`` solves over the channels of ports with a job; of the scaled
objective it never gets less. A channel never used has an infinite variance: selections with more such channels come
first. ``max |x|_1`` is ``alpha * E``, as in the paper's own evaluation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted import MEMORY_LIMIT
from marketsched.mechanisms.allocation.esdp.channel_policy import ChannelPolicy, Channels
from marketsched.mechanisms.allocation.esdp.schedules import (
    Exploration,
    Sequence,
    Slack,
    exploration_sequence,
    scale_of,
    slack_sequence,
)
from marketsched.mechanisms.legal import Memory, PositiveShare, legal


class Esdp(ChannelPolicy):
    """Efficient sampling-based dynamic programming.

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As of `Channels`; ``requests`` may be one `Channels` in place of all.
    alpha : float
        Share of all channels that stands for the largest number selected at once.
    slack, exploration : str or callable
        delta(t) and g(t): names of `schedules`, or functions of t.
    arrivals : {"zero", "plan"}
        Plan over all ports and switch absent ones off (paper), or plan over present ports.
    memory_limit : int
        Bytes the dynamic program may take; TooLargeError, perhaps from `allocate`, if it would take more.

    Examples
    --------
    >>> policy = Esdp([[1], [2], [1]], [2], [0, 0, 1])
    >>> policy.allocate([True, True])
    array([ True, False,  True])
    >>> policy.update([True, False, True], [0.9, 0.0, 0.1])
    >>> policy.allocate([True, True])  # the second channel was never used
    array([False,  True, False])
    """

    @legal
    def __init__(
        self,
        requests: ArrayLike | Channels,
        capacities: ArrayLike = (),
        ports: ArrayLike = (),
        alpha: PositiveShare = 0.5,
        slack: Slack = "paper",
        exploration: Exploration = "paper",
        arrivals: Literal["zero", "plan"] = "zero",
        *,
        n_ports: int | None = None,
        memory_limit: Memory = MEMORY_LIMIT,
    ) -> None:
        super().__init__(requests, capacities, ports, n_ports=n_ports)
        self.alpha, self.arrivals = alpha, arrivals
        self.largest = alpha * self.channels.n_channels
        self.slack, self.exploration = slack_sequence(slack), exploration_sequence(exploration, self.largest)
        self.name = _name(slack, exploration, arrivals)
        self._problem = self.channels.problem(memory_limit)

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        t = self.statistics.slot
        scale, s_max = scale_of(self.slack(t), self.largest)
        scaled = self.statistics.scaled(self.exploration(t), scale)
        among = present if self.arrivals == "plan" else None
        table = self._problem.solve(scaled.values, scaled.variances, s_max, unseen=scaled.unseen, among=among)
        return table.selection(table.choice()) & present


def _name(slack: str | Sequence, exploration: str | Sequence, arrivals: str) -> str:
    """Return the policy's name, which says what differs from the paper's defaults."""
    given = (("delta", slack), ("g", exploration))
    changes = [f"{symbol} {x if isinstance(x, str) else 'own'}" for symbol, x in given if x != "paper"]
    changes += ["plans present ports"] if arrivals == "plan" else []
    return f"esdp ({', '.join(changes)})" if changes else "esdp"
