r"""Several jobs per port and slot: every job of a port gets a port of its own (section 3.4 of the OgaSched paper).

If at most :math:`J_l` jobs come to port :math:`l` in one slot, the port is copied :math:`J_l` times: copy
:math:`j` has the same requirements and channels, and holds the slot's :math:`j`-th job if there is one,
:math:`j \le x_l(t)`. Copies share the capacities of their instances. The port then earns the paper's

.. math:: q_l = \sum_{j=1}^{J_l} 1\{j \le x_l(t)\} \Bigl[ \sum_{k, r} f_r^k\bigl(y_{(l,r)}^{j,k}\bigr)
   - \max_k \beta_k \sum_r y_{(l,r)}^{j,k} \Bigr] ,

and every policy for at most one job per port works as it is, with its guarantee for the copied cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.arrays import count_array, float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError


class PortCopies:
    """The copies of every port: port by port, first copies first.

    Parameters
    ----------
    most : array_like of int, shape (n_ports,)
        J_l, the most jobs that can come to a port in one slot; a port with 0 has no copy.

    Attributes
    ----------
    most : ndarray of int64, shape (n_ports,)
    ports : ndarray of int64, shape (n_copies,)
        The port of each copy.
    ranks : ndarray of int64, shape (n_copies,)
        Which of the port's jobs the copy holds: j, from 1.

    Raises
    ------
    InvalidParameterError
        If ``most`` is not such an array, or all of it is 0.

    Examples
    --------
    >>> copies = PortCopies([2, 1])
    >>> copies.ports, copies.presence([1, 1])
    (array([0, 0, 1]), array([1, 0, 1]))
    """

    def __init__(self, most: ArrayLike) -> None:
        self.most = count_array("most", most, np.size(most)).copy()
        if not self.most.any():
            raise InvalidParameterError(f"most = {self.most.tolist()}: expected a port to which jobs can come")
        self.ports: NDArray[np.int64] = np.repeat(np.arange(self.most.size), self.most)
        first = np.cumsum(self.most) - self.most
        self.ranks: NDArray[np.int64] = np.arange(self.ports.size) - first[self.ports] + 1
        for array in (self.most, self.ports, self.ranks):
            read_only(array)

    @property
    def n_ports(self) -> int:
        """L, ports before copying."""
        return int(self.most.size)

    @property
    def n_copies(self) -> int:
        """The sum of J_l."""
        return int(self.ports.size)

    def presence(self, counts: ArrayLike) -> NDArray[np.int64]:
        """Return which copies hold a job, zeros and ones, shape (n_copies,), given the jobs per port.

        Raises
        ------
        InvalidParameterError
            If ``counts`` are not counts of shape (n_ports,), or a port has more jobs than copies.
        """
        jobs = count_array("counts", counts, self.n_ports)
        if (jobs > self.most).any():
            port = int(np.flatnonzero(jobs > self.most)[0])
            raise InvalidParameterError(f"counts[{port}] = {jobs[port]}: expected at most {self.most[port]} jobs")
        return np.asarray(self.ranks <= jobs[self.ports], dtype=np.int64)

    def replicate(self, cluster: BipartiteCluster) -> BipartiteCluster:
        """Return the cluster whose ports are the copies.

        Raises
        ------
        InvalidParameterError
            If the cluster has another number of ports.
        """
        self._check_ports(cluster.n_ports)
        return cluster.of_ports(self.ports)

    def sum_copies(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return sums over the copies of each port: of rewards, gains, overheads, or of an allocation's amounts.

        Parameters
        ----------
        values : array_like of float, shape (n_copies, ...)

        Returns
        -------
        ndarray of float, shape (n_ports, ...)

        Raises
        ------
        InvalidParameterError
            If ``values`` has another length.
        """
        given = float_array("values", values, (self.n_copies, *np.shape(values)[1:]))
        sums = np.zeros((self.n_ports, *given.shape[1:]))
        np.add.at(sums, self.ports, given)
        return sums

    def _check_ports(self, n_ports: int) -> None:
        if n_ports != self.n_ports:
            raise InvalidParameterError(f"{n_ports} ports: expected {self.n_ports}, one per entry of most")


class CopiedArrivals:
    """Which copies hold a job, slot by slot, as an arrival process of the copied cluster.

    Parameters
    ----------
    arrivals : ArrivalProcess
        Counts per port.
    copies : PortCopies

    Raises
    ------
    InvalidParameterError
        If the ports disagree in number, or more jobs may come to a port than it has copies.
    """

    def __init__(self, arrivals: ArrivalProcess, copies: PortCopies) -> None:
        copies._check_ports(arrivals.n_ports)
        copies.presence(arrivals.most)  # raises if there can be more jobs than copies
        self._arrivals, self._copies = arrivals, copies
        self.n_ports = copies.n_copies
        self.most: NDArray[np.int64] = np.ones(self.n_ports, dtype=np.int64)
        read_only(self.most)

    @property
    def slots(self) -> int | None:
        """How many slots there are; None: no last one."""
        return self._arrivals.slots

    def begin(self) -> None:
        """Go back to the first slot; the same arrivals come again."""
        self._arrivals.begin()

    def draw(self) -> NDArray[np.int64]:
        """Return which copies hold a job in the next slot: zeros and ones, shape (n_copies,)."""
        return self._copies.presence(self._arrivals.draw())
