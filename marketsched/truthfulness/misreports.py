"""Misreports: what an owner may say instead of the truth, as plain data with a size and a name in words.

Every misreport is a small frozen record: a kind and a few numbers, with a point at which it is the
truth (`Misreport.neutral`). It turns the true statement into the reported one; limits the mechanism
announces cut values and durations, and whatever else is out of range is an `InvalidReportError`, so
that nobody searches where nobody may go.

The *size* of a lie, its distance from the truth, has no unit: the change of a factor ``|f - 1|``;
rounds as a share of S; nodes as a share of those needed; probability moved; and the sum over the
parts of a combination. It orders lies of one family; between families it is a convention.

Inside the model an owner may misreport its statement and nothing else. What goes beyond that is in
:mod:`marketsched.truthfulness.outside_model` and carries ``inside_model = False``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.strategies import PublicInformation
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.sow import StatementOfWork

Bounds = tuple[float, float]

KINDS: dict[str, type[Misreport]] = {}

_HOMES = ("value_misreports", "law_misreports", "outside_model", "own_lies")  # whose import fills the table of kinds


@runtime_checkable
class Lie(Protocol):
    """The least a search asks of a misreport of a user's own; strategies of agents have it, too."""

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return what is reported."""
        ...


@dataclass(frozen=True)
class Misreport:
    """Base of all misreports.

    Subclasses are frozen dataclasses of numbers, and set ``kind`` (their name as data), ``neutral``
    (the value of each number at which nothing is misreported), and whether they are inside the model.
    """

    kind: ClassVar[str] = ""
    neutral: ClassVar[Mapping[str, float]] = {}
    inside_model: ClassVar[bool] = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.kind:
            KINDS[cls.kind] = cls

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return what is reported.

        Raises
        ------
        InvalidReportError
            If there is no such report of this truth.
        """
        raise NotImplementedError

    def conduct(self, told: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        """Return all that the owner does: by default one report, for ``told`` in place of the truth."""
        return plain(self.report(told, public), truth.concurrency)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Return, for each number that may be searched, its range; whole numbers stay whole."""
        return {}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the size of the lie; 0 is the truth."""
        raise NotImplementedError

    def words(self, truth: StatementOfWork) -> str:
        """Return what the owner does, as one would say it."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """Return the misreport as plain data, which `misreport_from` reads back."""
        own = asdict(self).items()
        return {"kind": self.kind, **{k: list(v) if isinstance(v, tuple) else v for k, v in own}}

    @classmethod
    def read(cls, given: dict[str, Any]) -> Misreport:
        """Return the misreport with these fields, as `data` has written them."""
        known = [f.name for f in fields(cls)]
        if set(given) != set(known):
            raise InvalidParameterError(
                f"misreport {cls.kind!r} has {', '.join(given) or 'no fields'}: expected {', '.join(known)}"
            )
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})

    def with_values(self, values: Mapping[str, float]) -> Self:
        """Return the misreport with some of its numbers replaced; whole ones are rounded."""
        whole = {f.name for f in fields(self) if isinstance(getattr(self, f.name), int)}
        return replace(self, **{k: round(v) if k in whole else float(v) for k, v in values.items()})

    def toward_truth(self, share: float) -> Self:
        """Return the misreport with ``share`` of its way from the truth left: 1 is itself, 0 the truth."""
        return self.with_values({k: n + share * (getattr(self, k) - n) for k, n in self.neutral.items()})


def misreport_from(data: Mapping[str, Any]) -> Misreport:
    """Return the misreport that `Misreport.data` has written.

    Raises
    ------
    InvalidParameterError
        If the kind or a field is unknown, or a number is out of range (InvalidReportError: in a statement).

    Examples
    --------
    >>> misreport_from({"kind": "scale-value", "factor": 0.5})
    ScaledValue(factor=0.5)
    """
    for home in _HOMES:
        import_module(f"marketsched.truthfulness.{home}")
    kind = data.get("kind") if isinstance(data, Mapping) else data
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in KINDS:
        raise InvalidParameterError(f"misreport kind = {kind!r}: expected one of {', '.join(sorted(KINDS))}")
    return KINDS[kind].read({key: value for key, value in data.items() if key != "kind"})


@dataclass(frozen=True)
class Truth(Misreport):
    """No misreport."""

    kind = "truth"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the truth."""
        return truth

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return 0."""
        return 0.0

    def words(self, truth: StatementOfWork) -> str:
        """Say so."""
        return "reports the truth"


@dataclass(frozen=True)
class Combination(Misreport):
    """Several misreports at once, each applied to what the one before reports.

    Size: the sum of the parts' sizes. At most one part, the last, goes beyond the model.

    Raises
    ------
    InvalidParameterError
        If there are fewer than two parts, or one before the last goes beyond the model.
    """

    parts: tuple[Misreport, ...]

    kind = "combination"

    @classmethod
    def read(cls, given: dict[str, Any]) -> Misreport:
        """Return the combination of the parts."""
        parts = given.get("parts")
        if set(given) != {"parts"} or not isinstance(parts, (list, tuple)):
            raise InvalidParameterError(f"combination has {', '.join(given)}: expected a list of parts")
        return cls(tuple(misreport_from(part) for part in parts))

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if len(self.parts) < 2 or not all(part.inside_model for part in self.parts[:-1]):
            raise InvalidParameterError(
                f"combination of {[part.kind for part in self.parts]}: expected two or more misreports, "
                "only the last of them beyond the model"
            )

    @property
    def inside_model(self) -> bool:  # type: ignore[override]
        """True if all parts are."""
        return self.parts[-1].inside_model

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return what the last part reports."""
        for part in self.parts:
            truth = part.report(truth, public)
        return truth

    def conduct(self, told: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        """Return the conduct of the last part, for what the others report."""
        for part in self.parts[:-1]:
            told = part.report(told, public)
        return self.parts[-1].conduct(told, truth, public)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Those of the parts, under ``<place>.<name>``."""
        own = [part.bounds(truth, public) for part in self.parts]
        return {f"{i}.{name}": pair for i, bounds in enumerate(own) for name, pair in bounds.items()}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the sum over the parts."""
        return sum(part.distance(truth, public) for part in self.parts)

    def words(self, truth: StatementOfWork) -> str:
        """Say one part after the other."""
        return " and ".join(part.words(truth) for part in self.parts)

    def data(self) -> dict[str, Any]:
        """Return the parts as plain data."""
        return {"kind": self.kind, "parts": [part.data() for part in self.parts]}

    def with_values(self, values: Mapping[str, float]) -> Self:
        """Replace numbers of the parts, named ``<place>.<name>``."""
        own: list[dict[str, float]] = [{} for _ in self.parts]
        for path, value in values.items():
            place, _, name = path.partition(".")
            own[int(place)][name] = value
        return replace(self, parts=tuple(p.with_values(v) if v else p for p, v in zip(self.parts, own, strict=True)))

    def toward_truth(self, share: float) -> Self:
        """Bring all parts nearer to the truth."""
        return replace(self, parts=tuple(part.toward_truth(share) for part in self.parts))


def count_of(n: int, what: str) -> str:
    """Return "1 node", "2 nodes"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
