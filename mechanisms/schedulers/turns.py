r"""Owners in turn: who used least for its share goes first, and inside an owner its jobs go in its own order.

Each owner has a number, and a part s of the machine that it is due. Its use is in node-rounds, and fades from round to
round. Waiting jobs are tried in order of

.. math:: (u_k + 1) / s_k,

owners without a part last, among themselves by use; inside an owner the most important job first (`values.importance`),
of equal ones who arrived first. Importance of different owners is never compared: any increasing map of the importance
of one owner's jobs, which is value over work or a rank, leaves everything as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.schedulers.share_tree import ShareTree


class Accounts:
    """Owners by number, and the part of the machine that each is due, in ``parts``: at most 1 together.

    Parameters
    ----------
    shares : mapping of str to float, optional
        Accounts and owners with their shares, numbers as of `ShareTree`; None: each of ``owners`` has an equal part.
    newcomers : str
        The account of owners that ``shares`` does not name: they divide its share. Empty: they have none.
    owners : iterable of hashable, optional
        Who has an account where ``shares`` is None; an owner of another name has none.
    """

    def __init__(
        self, shares: Mapping[str, Any] | None = None, newcomers: str = "", owners: Iterable[Hashable] | None = None
    ) -> None:
        if newcomers and shares is None:
            raise InvalidParameterError(place="newcomers", value=newcomers, legal="an account that shares names")
        self._tree = None if shares is None else ShareTree(shares, newcomers)
        self._newcomers = newcomers
        known = list(dict.fromkeys(owners or ())) if self._tree is None else list(self._tree)
        self._shares: dict[Any, Any] = dict.fromkeys(known, 1.0) if shares is None else dict(shares)
        self._numbers: dict[Hashable, int] = {owner: i for i, owner in enumerate(known)}
        self.parts = np.full(len(known), 1.0 / max(1, len(known)))
        if self._tree is not None:
            self._divide(self._tree)

    def __len__(self) -> int:
        """How many owners have a number."""
        return len(self._numbers)

    @property
    def names(self) -> list[Hashable]:
        """The owners by number."""
        return list(self._numbers)

    def statistics(self) -> dict[str, float]:
        """Return how many owners there are, and how many of them have no part."""
        return {"owners": float(len(self)), "owners_without_share": float((self.parts == 0).sum())}

    def number_of(self, owner: Hashable) -> int:
        """Return the number of an owner; one that is not known enters as a newcomer."""
        found = self._numbers.get(owner)
        if found is not None:
            return found
        self._numbers[owner] = number = len(self._numbers)
        self.parts = np.append(self.parts, 0.0)
        if self._tree is not None and self._newcomers:
            self._tree.use(owner, 0.0)
            self._divide(self._tree)
        return number

    def find(self, owner: Hashable) -> int | None:
        """Return the number of an owner; None: it is not known, and nothing is changed."""
        return self._numbers.get(owner)

    def __contains__(self, place: str) -> bool:
        """Tell whether an account or an owner has a share in the tree."""
        return place in self._shares

    def set_share(self, place: str, share: float) -> None:
        """Give an account or an owner another share, or its first one, by its ``place`` in the tree, as of `ShareTree`.

        A newcomer that gets a place of its own leaves the account of newcomers. InvalidParameterError, and nothing is
        changed, if the share is negative or no number, an account above the place is missing, or the owner has another
        place.
        """
        shares = {**self._shares, place: share}
        tree = ShareTree(shares, self._newcomers)
        if self._newcomers:
            for guest in self._numbers.keys() - set(tree):
                tree.use(guest, 0.0)
        tree.portions()  # refuses what copies a share
        self._shares, self._tree = shares, tree
        for owner in tree:
            self._numbers.setdefault(owner, len(self._numbers))
        self._divide(tree)

    def _divide(self, tree: ShareTree) -> None:
        portions = tree.portions()
        self.parts = np.array([portions.get(owner, 0.0) for owner in self._numbers])


class BySharesMarket(ArrivalMarket):
    """A market without money, in which owners have shares."""

    accounts: Accounts
    free_of_charge: ClassVar[bool] = True

    @staticmethod
    def wants_owners(shares: object = None, **_: object) -> bool:
        """Tell whether these parameters need the names of all owners."""
        return shares is None

    def statistics(self) -> dict[str, float]:
        """Return how many owners there are, and how many of them have no part."""
        return self.accounts.statistics()

    def set_share(self, place: str, share: float) -> None:
        """Give an account or an owner another share from the current round on; errors as of `Accounts.set_share`."""
        self.accounts.set_share(place, share)


class Turns:
    """The use of each owner, node-rounds by number, and the order of waiting jobs by it."""

    def __init__(self, accounts: Accounts, kept: float) -> None:
        self._accounts, self.kept = accounts, kept
        self.used = np.zeros(len(accounts))

    def fade(self) -> None:
        """Begin a round: use fades, and newcomers have none."""
        new = len(self._accounts) - len(self.used)
        self.used = np.concatenate([self.kept * self.used, np.zeros((new, *self.used.shape[1:]))])

    def pass_rounds(self, owners: NDArray[np.int64], nodes: NDArray[np.int64], count: int) -> None:
        """Let so many rounds go by in which the same runs go on; as of `count`."""
        _pass_kernel(self.used, self.kept, owners, nodes, count)

    def count(self, owners: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
        """Count what ran in this round: the nodes of each run, and whose it is."""
        np.add.at(self.used, owners, nodes)

    def order(self, owners: NDArray[np.int64], important: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the places of waiting jobs, given in order of arrival, in the order in which they are tried.

        ``owners`` are numbers; ``important`` is compared between jobs of one owner alone.
        """
        parts, used = self._accounts.parts[owners], self.used[owners]
        due = parts > 0
        turn = np.where(due, (used + 1.0) / np.where(due, parts, 1.0), used)
        return np.lexsort((-important, owners, turn, ~due))


@njit(cache=True)
def _pass_kernel(used, kept, owners, nodes, count):  # type: ignore[no-untyped-def]
    for _ in range(count):
        used *= kept
        for i in range(owners.size):
            used[owners[i]] += nodes[i]
