"""Public information before a report, and the protocol of a reporting strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.legal import Finite, Whole
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True)
class PublicInformation:
    """Public information of all owners before they report: the size of the market and the legal limits.

    Attributes
    ----------
    capacity : int
        C, nodes.
    horizon : int
        T, the last round.
    max_delay : int
        S, rounds: values at completion times ``>= birth + max_delay`` count as 0.
    max_concurrency, max_duration, max_value : int, int, float or None
        Largest concurrency (nodes), duration (rounds) and value (credits) a report may hold; None
        if the mechanism announces no such limit.
    cluster : Cluster or None
        Nodes of several kinds, with their resources; None: they are identical.
    others : tuple of StatementOfWork
        What others have announced before, with laws that differ, the latest first; empty where reports are not open.

    Examples
    --------
    >>> public = PublicInformation(capacity=5, horizon=20, max_delay=10, max_value=10.0)
    >>> public.max_value, public.max_duration
    (10.0, None)
    """

    capacity: int
    horizon: int
    max_delay: int
    max_concurrency: int | None = None
    max_duration: int | None = None
    max_value: float | None = None
    cluster: Cluster | None = None
    others: tuple[StatementOfWork, ...] = ()

    @classmethod
    def of(cls, mechanism: Mechanism, capacity: int, horizon: int, max_delay: int) -> PublicInformation:
        """Return the public information in a market of these sizes; limits are the mechanism's.

        Raises InvalidParameterError if it ends before ``horizon``, or announces a limit that is none.
        """
        if mechanism.horizon < horizon:
            raise InvalidParameterError(
                place="horizon", value=horizon, legal=f"at most the mechanism's last round {mechanism.horizon}"
            )
        mechanism = as_mechanism(mechanism)
        width, duration, value = mechanism.max_concurrency, mechanism.max_duration, mechanism.max_value
        return cls(
            capacity,
            horizon,
            max_delay,
            None if width is None else Whole(1).check("the mechanism's max_concurrency", width),
            None if duration is None else Whole(1).check("the mechanism's max_duration", duration),
            None if value is None else Finite("[0, inf)").check("the mechanism's max_value", value),
            mechanism.cluster,
        )

    @property
    def widest(self) -> int:
        """The most nodes a report may declare."""
        return self.capacity if self.max_concurrency is None else min(self.capacity, self.max_concurrency)


@runtime_checkable
class Strategy(Protocol):
    """The interface of ways to report, also of a user's own.

    A strategy may also have an attribute ``delay``: the rounds it waits after birth before it
    submits (0 if absent). The report must be born in the round in which it is submitted. One that looks at the market
    may have ``watch(market)``, which gets the market before each report (a
    :class:`~marketsched.agents.market_run.MarketRun`: its ``round``, ``load``, ``mechanism`` and ``log`` are what is
    there so far); one that learns ``hear(utility)``, which is called when the job leaves the market, or
    ``see(owner)``, which gets the owner then.

    Examples
    --------
    >>> class Hurried:  # says that it is there earlier than it is
    ...     def report(self, truth, public):
    ...         return truth.moved(max(1, truth.birth - 1))
    >>> isinstance(Hurried(), Strategy)
    True
    """

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the statement of work to submit for the true statement ``truth``."""
        ...


def submission_delay(strategy: Strategy) -> int:
    """Return how many rounds after birth ``strategy`` submits."""
    return int(getattr(strategy, "delay", 0))


def looks(strategy: object) -> bool:
    """Tell whether a strategy looks at the market, so that its reports are not known before it is played.

    Examples
    --------
    >>> class Patient:  # says nothing of its value while the nodes are busy
    ...     def watch(self, market):
    ...         self.busy = market.load == market.setup.capacity
    ...     def report(self, truth, public):
    ...         return truth
    >>> looks(Patient()), looks(object())
    (True, False)
    """
    return any(hasattr(strategy, name) for name in ("watch", "hear", "see"))
