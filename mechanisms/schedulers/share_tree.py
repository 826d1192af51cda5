r"""Slurm's fair-share factors: a tree of accounts and users with shares and usage, ranked or by the classic formula.

*Fair tree*, the default since Slurm 19.05, ranks users. At each level of the tree siblings are compared by

.. math:: LF = S / U,

with S the shares of an account or user over those of it and its siblings, U its usage over that of its account; LF is
infinite without usage, and 0 without shares. The tree is walked depth first, larger LF first, users before accounts of
the same LF. The i-th user of n has the factor (n + 1 - i) / n. Users of one LF share the factor of the first of them. A
user and the best user of a sibling account of the same LF share one, too.

*Classic* is :math:`2^{-U_E/(S d)}`, with S the product of the shares from the top, d the damping factor, and
:math:`U_E = U_A + (U_E^{parent} - U_A) s / \sum s`; at the first level the share :math:`U_A` of all usage itself.

Sources: Slurm's pages *Fair Tree Fairshare Algorithm* and *Classic Fairshare Algorithm*; `fair_tree.c` and
`priority_multifactor.c` at the tags slurm-22-05-8-1 and slurm-26-05-3-1; Slurm's own tests 24.1, 24.3 and 24.4.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite, Named, Positive, legal

PARENT = "parent"  # it has the shares of the account above it
_SHARES = Named((PARENT,), Finite("[0, inf)"))


class _Node:
    """An account, or, with ``children`` None, a user."""

    __slots__ = ("children", "level_shares", "name", "parent", "shares", "usage")

    def __init__(
        self, name: Hashable, parent: _Node | None, shares: float | None, children: list[_Node] | None
    ) -> None:
        self.name, self.parent, self.shares, self.children = name, parent, shares, children
        self.usage = 0.0
        self.level_shares = 0.0  # of an account: shares of all its children

    @property
    def level(self) -> float:
        """LF; of a user that has its account's shares, infinity."""
        assert self.parent is not None
        if self.shares is None:
            return math.inf
        if self.shares == 0:
            return 0.0
        if self.usage == 0:
            return math.inf
        return self.shares / self.parent.level_shares / (self.usage / self.parent.usage)


class ShareTree:
    """Accounts and users with their shares, >= 0, by place in the tree, and their usage.

    An account ends with ``/``: ``"physics/"``, ``"physics/optics/"``; a user stands in its account, or at the top:
    ``"physics/ann"``, ``"bob"``, and has one place. ``"parent"`` in place of a number gives a user its account's
    shares; what is in an account with ``"parent"`` is on the level of that account. Users whom ``shares`` does not name
    are in the account ``newcomers``, as in ``"guests/"`` (empty: at the top), with one share each.
    InvalidParameterError if a share is outside its range, an account that a place names is missing, or a user has two
    places.

    Examples
    --------
    Physics has twice the shares of biology, and has used as much; in physics Ann has used all of it:

    >>> tree = ShareTree({"physics/": 2, "biology/": 1, "physics/ann": 1, "physics/bob": 1, "biology/eve": 1})
    >>> tree.use("ann", 10.0)
    >>> tree.use("eve", 10.0)
    >>> tree.fair_tree()
    {'bob': 1.0, 'ann': 0.6666666666666666, 'eve': 0.3333333333333333}
    """

    def __init__(self, shares: Mapping[str, float | str] | None = None, newcomers: str = "") -> None:
        self._root = _Node("", None, None, [])
        self._accounts: dict[str, _Node] = {"": self._root}
        self._users: dict[Hashable, _Node] = {}
        if shares is not None and not isinstance(shares, Mapping):
            raise InvalidParameterError(place="shares", value=shares, legal="shares by place: {physics/ann: 1}")
        given = dict(shares or {})
        for place in sorted(given, key=lambda place: (str(place).count("/"), not str(place).endswith("/"))):
            self._plant(place, given[place])
        if newcomers not in self._accounts:
            legal = ", ".join(map(repr, self._accounts))
            raise InvalidParameterError(place="newcomers", value=newcomers, legal=f"one of {legal}")
        self._newcomers = self._accounts[newcomers]

    def _plant(self, place: str, given: float | str) -> None:
        """Add the account or user of a place."""
        if not isinstance(place, str) or not place.strip("/"):
            legal_ = "a place in the tree, as 'physics/ann' (a name that is a number in quotes: '7')"
            raise InvalidParameterError(place="shares", value=place, legal=legal_)
        share = _SHARES.check(f"shares: {place}", given)
        stem = place.rstrip("/")
        above, _, name = stem.rpartition("/")
        above = f"{above}/" if above else ""
        parent = self._accounts.get(above)
        if parent is None:
            legal_ = f"accounts that stand in shares themselves ({above!r} does not)"
            raise InvalidParameterError(place="shares", value=place, legal=legal_)
        if place.endswith("/"):  # one with its parent's shares is none of its own: its children are its parent's
            self._accounts[place] = parent if share == PARENT else self._add(name, parent, share, [])
        elif name in self._users:
            raise InvalidParameterError(place="shares", value=place, legal=f"one place for the user {name!r}")
        else:
            self._users[name] = self._add(name, parent, None if share == PARENT else share, None)

    @staticmethod
    def _add(name: Hashable, parent: _Node, shares: float | None, children: list[_Node] | None) -> _Node:
        node = _Node(name, parent, shares, children)
        assert parent.children is not None
        parent.children.append(node)
        parent.level_shares += shares or 0.0
        return node

    def __len__(self) -> int:
        """How many users there are."""
        return len(self._users)

    def __iter__(self) -> Iterator[Hashable]:
        """Their names, in the order in which they came."""
        return iter(self._users)

    def use(self, user: Hashable, amount: float) -> None:
        """Add usage to a user and all accounts above it; one that is not known enters as a newcomer."""
        node: _Node | None = self._users.get(user)
        if node is None:
            node = self._users[user] = self._add(user, self._newcomers, 1.0, None)
        while node is not None and amount:
            node.usage += amount
            node = node.parent

    def scale(self, factor: float) -> None:
        """Multiply all usage."""
        for node in {*self._accounts.values(), *self._users.values()}:
            node.usage *= factor

    def usage(self, user: Hashable) -> float:
        """Return the usage of a user."""
        return self._users[user].usage

    def portions(self) -> dict[Hashable, float]:
        """Return the part of the whole that each user is due: the product of its shares, each over those beside it.

        They add up to at most 1: what is due to an account without users, or without shares in it, is nobody's.
        InvalidParameterError if a user has its account's shares: of several such users each would have all of them.
        """
        found: dict[Hashable, float] = {}
        accounts = [(self._root, 1.0)]
        while accounts:
            account, portion = accounts.pop()
            for node in account.children or ():
                if node.shares is None:
                    legal_ = "a number: portions of a share are divided, and never copied"
                    raise InvalidParameterError(place=f"shares: {node.name}", value=PARENT, legal=legal_)
                own = portion * node.shares / account.level_shares if account.level_shares > 0 else 0.0
                if node.children is None:
                    found[node.name] = own
                else:
                    accounts.append((node, own))
        return found

    def fair_tree(self, *, merged: bool = False) -> dict[Hashable, float]:
        """Return the fair tree factor of every user, by rank.

        ``merged``: users and accounts of sibling accounts of the same LF are ranked together, as Slurm's page describes
        it. Else, as in slurmctld 22.05, one account comes after the other, and the first user of a later one shares the
        factor of the last user before it.
        """
        walk = _Walk(len(self._users), merged)
        assert self._root.children is not None
        walk.visit(self._root.children, tied=False)
        return walk.factors

    @legal
    def classic(self, *, damping: Positive = 1.0) -> dict[Hashable, float]:
        """Return the classic factor of every user; ``damping`` is d, Slurm's ``FairShareDampeningFactor``."""
        factors: dict[Hashable, float] = {}
        self._classic(self._root, 1.0, None, damping, factors)
        return factors

    def _classic(
        self, account: _Node, shares: float, effective: float | None, damping: float, factors: dict[Hashable, float]
    ) -> None:
        """Go through the children of an account that has these shares of all, and this effective usage."""
        total = self._root.usage
        for node in account.children or ():
            own = node.usage / total if total > 0 else 0.0
            share = 0.0 if account.level_shares == 0 else (node.shares or 0.0) / account.level_shares
            used, part = own, shares * share
            if effective is not None:
                used = own + (effective - own) * share if account.level_shares > 0 else effective
            if node.shares is None:
                used, part = (own if effective is None else effective), shares
            if node.children is None:
                factors[node.name] = math.pow(2.0, -used / part / damping) if part > 0 else 0.0
            else:
                self._classic(node, part, used, damping, factors)


class _Walk:
    """The walk of a tree that ranks its users."""

    def __init__(self, n: int, merged: bool) -> None:
        self._n, self._merged = n, merged
        self._rank = self._next = n  # of the users last met, and of the next one that is not tied with them
        self.factors: dict[Hashable, float] = {}

    def visit(self, siblings: Sequence[_Node], tied: bool) -> None:
        """Rank the users below these; ``tied``: the first of them shares the rank of the user before."""
        levels = [node.level for node in siblings]
        order = sorted(range(len(levels)), key=lambda i: (-levels[i], siblings[i].children is not None))
        before, place = None, 0
        while place < len(order):
            node, level = siblings[order[place]], levels[order[place]]
            tied = (tied and place == 0) or level == before
            before = level
            place += 1
            if node.children is None:
                self._rank = self._rank if tied else self._next
                self._next -= 1
                self.factors[node.name] = self._rank / self._n
                continue
            below = list(node.children)
            while self._merged and place < len(order) and levels[order[place]] == level:
                below += siblings[order[place]].children or ()
                place += 1
            self.visit(below, tied)
