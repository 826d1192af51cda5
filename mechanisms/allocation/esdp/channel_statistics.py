"""What is learnt of channels from the slots they were used in: counts, means, variances, and their scaling.

A decision of slot t knows slots 1 .. t - 1 only; so do the statistics here: ESDP (8)-(10) summed up to
the slot before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.checks import bool_array, check_shape, float_array, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class ScaledStatistics:
    """Whole-number statistics for the dynamic program.

    Attributes
    ----------
    values : array of int64, shape (E,)
        Scaled means, ESDP (16).
    variances : array of float64, shape (E,)
        Scaled variances, ESDP (17): whole numbers; 0 where unseen.
    unseen : array of bool, shape (E,)
        Channels never used: their variance is +inf.
    """

    values: NDArray[np.int64]
    variances: NDArray[np.float64]
    unseen: NDArray[np.bool_]


class ChannelStatistics:
    """Counts and sums of the utilities seen on each channel.

    Parameters
    ----------
    n_channels : int
        E.

    Attributes
    ----------
    slot : int
        t, the slot to be decided next, from 1.
    counts : array of int64, shape (E,)
        n, slots before t in which a channel was used, ESDP (8).
    totals : array of float64, shape (E,)
        Sum of its utilities in them.

    Raises
    ------
    InvalidParameterError
        If there is no channel.

    Examples
    --------
    >>> seen = ChannelStatistics(2)
    >>> seen.update([True, False], [0.5, 0.0])
    >>> seen.slot, seen.means, seen.variances(3.0)
    (2, array([0.5, 0. ]), array([1.5, inf]))
    """

    def __init__(self, n_channels: int) -> None:
        n_channels = whole_parameter("number of channels", n_channels, 1)
        self.slot = 1
        self.counts = np.zeros(n_channels, dtype=np.int64)
        self.totals = np.zeros(n_channels)

    def update(self, selected: ArrayLike, utilities: ArrayLike) -> None:
        """Take what slot t brought and go on to the next.

        Parameters
        ----------
        selected : array_like of bool, shape (E,)
            Channels that were used.
        utilities : array_like of float, shape (E,)
            Their utilities, in [0, 1]; entries of channels not used are not looked at.

        Raises
        ------
        InvalidParameterError
            If shapes disagree, or the utility of a used channel is outside [0, 1] or not a number.
        """
        used = bool_array("selected", selected, self.counts.shape)
        try:
            given = np.asarray(utilities)
        except ValueError as problem:  # rows of different length
            raise InvalidParameterError(f"utilities is not an array ({problem}): expected numbers") from problem
        check_shape("utilities", given.shape, used.shape)
        seen = float_array("utilities", np.where(used, given, 0), used.shape, lowest=0.0, highest=1.0)
        self.counts += used
        self.totals += seen
        self.slot += 1

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Channels never used, shape (E,)."""
        return np.asarray(self.counts == 0)

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean utility of each channel, 0 where unseen: ESDP (9); shape (E,)."""
        return np.asarray(self.totals / np.maximum(self.counts, 1))

    def variances(self, exploration: float) -> NDArray[np.float64]:
        """Return ``g(t) / (2 n)``, +inf where unseen: ESDP (10); shape (E,)."""
        return np.where(self.unseen, np.inf, exploration / (2.0 * np.maximum(self.counts, 1)))

    def scaled(self, exploration: float, scale: int) -> ScaledStatistics:
        """Return means times ``xi`` and variances times ``xi**2``, rounded up: ESDP (16)-(17).

        Parameters
        ----------
        exploration : float
            g(t), >= 0.
        scale : int
            xi(t), ESDP (18).
        """
        unseen = self.unseen
        finite = np.where(unseen, 0.0, self.variances(exploration))
        values = np.ceil(scale * self.means).astype(np.int64)
        return ScaledStatistics(values, np.ceil(scale**2 * finite), unseen)
