"""What a lie is: a map from the true statement to the reported one, as plain data with a size and a name in words.

One class per lie holds all that is known of it: how it changes a report (agents in a market, and the
search), the range of its numbers, its distance
from the truth, what it does in words, and what it is called in YAML and in files of witnesses. `KINDS` lists
all classes by name.

A report is always legal: the limits the mechanism announces cut values, durations and nodes. If a truth has no such
report, or the limits would turn it into another lie, `Misreport.check` states this, and the search leaves it out.

The *size* of a lie, its distance from the truth, has no unit: the change of a factor ``|f - 1|``; rounds as a
share of S; nodes as a share of those needed; probability moved; and the sum over the parts of a combination.
It orders lies of one family; between families it is a convention.

What a lie can and cannot change is physical. A job that declares too few nodes never completes with value;
one that declares too many merely holds them. A misreported law or value changes the launch plan and nothing
else: the platform sees the real arrival, the real signal and the real end. If the real (arrival, signal) is
not in the reported support, the mechanism drops the job ([BLLMSW22]_, Section 2; docs/mathematics.md,
sections 1, 4 and 10). Inside the model an owner may misreport its statement and nothing else; what goes beyond
that is in :mod:`marketsched.agents.lies.outside_model` and carries ``inside_model = False``.

References
----------
.. [BLLMSW22] Babaioff, Lempel, Lucier, Menache, Slivkins, Wong: Truthful Online Scheduling of
   Cloud Workloads under Uncertainty, WWW 2022, arXiv:2203.01213.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.legal import Finite, Whole
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import ValueCurve

Bounds = tuple[float, float]

KINDS: dict[str, type[Misreport]] = {}  # by kind

LEAST = 1e-12  # probability; less is none
NEAR = 8  # how far from a number others are tried: so many whole ones, and down to such a part of others


class Number(NamedTuple):
    """A number of a lie: what data calls it, its range, and whether others are tried beside it."""

    name: str
    legal: str | tuple[int, int]  # an interval of finite numbers, or the ends of a range of whole ones
    searched: bool

    @property
    def whole(self) -> bool:
        """True for whole numbers."""
        return isinstance(self.legal, tuple)

    def checked(self, name: str, x: object) -> float:
        """Return ``x``, or raise InvalidParameterError."""
        if isinstance(self.legal, str):
            return Finite(self.legal).check(name, x)
        return Whole(*self.legal).check(name, x)

    def around(self, x: float) -> Bounds:
        """Return a legal range about ``x``."""
        if not isinstance(self.legal, str):
            return max(self.legal[0], x - NEAR), min(self.legal[1], x + NEAR)
        low, high = sorted((x / NEAR, 2 * x))
        return low, min(high, 1.0) if self.legal.endswith("1]") else high


def number(name: str, legal: str, *, searched: bool = True, **more: Any) -> Any:
    """Return the dataclass field of a finite number; ``default`` as keyword."""
    return _field(Number(name, legal, searched), more)


def whole(name: str, lowest: int, *, searched: bool = True, **more: Any) -> Any:
    """Return the dataclass field of a whole number; ``default`` as keyword."""
    return _field(Number(name, (lowest, LAST_ROUND), searched), more)


def _field(own: Number, more: Mapping[str, Any]) -> Any:
    return field(metadata={"number": own}, **more)


@dataclass(frozen=True)
class Misreport:
    """Base of all lies.

    Subclasses are frozen dataclasses of fields made by `number` and `whole`, and set

    * ``kind``, their name as data;
    * ``inside_model``, whether only the statement is misreported;
    * ``label`` and ``telling``, for lies that have a report for every truth: what the first number counts,
      in words, and an amount that shows something. These are offered in scenarios and on the dashboard.

    Examples
    --------
    See `default_families`, which returns many kinds of them.
    """

    kind: ClassVar[str] = ""
    inside_model: ClassVar[bool] = True
    label: ClassVar[str] = ""
    telling: ClassVar[float] = 0

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if vars(cls).get("kind"):  # a subclass without a name of its own is not read in the place of its parent
            KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for name, own in self.numbers().items():
            checked = own.checked(f"{type(self).__name__} {name}", getattr(self, name))
            object.__setattr__(self, name, checked)

    @classmethod
    def numbers(cls) -> dict[str, Number]:
        """Return the numbers by attribute."""
        return {f.name: f.metadata["number"] for f in fields(cls) if "number" in f.metadata}

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report, or raise InvalidReportError if there is none of this truth."""
        raise NotImplementedError

    def check(self, truth: StatementOfWork, public: PublicInformation) -> None:
        """Raise InvalidReportError if the announced limits would make another lie of it."""

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        """Return all that the owner does: by default one report, for ``claim`` in place of the truth.

        Raises InvalidReportError if there is no such report, or the limits would make another lie of it.
        """
        self.check(claim, public)
        return plain(self.report(claim, public), truth.concurrency)

    def near(self) -> dict[str, Bounds]:
        """Return, for each number that is searched, a range around it; whole numbers stay whole."""
        return {k: own.around(getattr(self, k)) for k, own in self.numbers().items() if own.searched}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the size of the lie; 0 is the truth."""
        raise NotImplementedError

    def words(self, truth: StatementOfWork) -> str:
        """Return the lie in words."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """Return the lie as plain data, which `misreport_from` reads back."""
        names = {name: own.name for name, own in self.numbers().items()}
        own = {names.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}
        return {"kind": self.kind, **{k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}}

    @classmethod
    def read(cls, given: dict[str, Any]) -> Misreport:
        """Return the lie with these fields, as `data` has written them."""
        names = {f.name: f.name for f in fields(cls)}
        for name, own in cls.numbers().items():
            names[own.name] = name
        found = {names.get(key, key): tuple(v) if isinstance(v, list) else v for key, v in given.items()}
        known = {f.name for f in fields(cls)}
        if set(found) != known or len(found) < len(given):
            written = [cls.numbers()[name].name if name in cls.numbers() else name for name in sorted(known)]
            raise InvalidParameterError(
                f"misreport {cls.kind!r} has {', '.join(map(str, given)) or 'no fields'}: expected {', '.join(written)}"
            )
        for name, own in cls.numbers().items():
            own.checked(own.name, found[name])  # an error calls it as the file does
        return cls(**found)

    def with_values(self, values: Mapping[str, float]) -> Self:
        """Return the lie with some of its numbers replaced; whole ones are rounded."""
        numbers = self.numbers()
        return replace(self, **{k: round(v) if numbers[k].whole else float(v) for k, v in values.items()})


def figure(x: float, truth: float, digits: int = 4) -> str:
    """Return ``x`` with ``digits`` significant digits, or as many as distinguish it from ``truth``.

    Examples
    --------
    >>> figure(0.5, 1.0), figure(0.9999512, 1.0), figure(1.0, 1.0)
    ('0.5', '0.99995', '1')
    """
    for more in range(digits, 18):
        text = f"{x:.{more}g}"
        if x == truth or float(text) != truth:
            return text
    return repr(float(x))


def misreport_from(data: Mapping[str, Any]) -> Misreport:
    """Return the lie that `Misreport.data` has written.

    Raises
    ------
    InvalidParameterError
        If the kind or a field is unknown, or a number is out of range (InvalidReportError: in a statement).

    Examples
    --------
    >>> misreport_from({"kind": "scale-value", "factor": 0.5})
    ScaleValue(f=0.5)
    """
    kind = data.get("kind") if isinstance(data, Mapping) else data
    if not isinstance(data, Mapping) or not isinstance(kind, str) or kind not in KINDS:
        raise InvalidParameterError(f"misreport kind = {kind!r}: expected one of {', '.join(sorted(KINDS))}")
    return KINDS[kind].read({key: value for key, value in data.items() if key != "kind"})


@dataclass(frozen=True)
class Truthful(Misreport):
    """No lie: the report is the truth itself, at birth.

    Examples
    --------
    >>> from marketsched import DeadlineValue, StatementOfWork
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 1.0)])
    >>> Truthful().report(truth, None) is truth
    True
    """

    kind = "truthful"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return truth

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 0.0

    def words(self, truth: StatementOfWork) -> str:
        return "reports the truth"


@dataclass(frozen=True)
class Combination(Misreport):
    """Several lies at once, each applied to the report of the one before.

    Size: the sum of the parts' sizes. At most one part, the last, goes beyond the model.
    Fewer than two parts, or one before the last that goes beyond the model, are an InvalidParameterError.
    """

    parts: tuple[Misreport, ...]

    kind = "combination"

    @classmethod
    def read(cls, given: dict[str, Any]) -> Misreport:
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
        for part in self.parts:
            truth = part.report(truth, public)
        return truth

    def check(self, truth: StatementOfWork, public: PublicInformation) -> None:
        """Check each part for the report of the one before."""
        for part in self.parts:
            part.check(truth, public)
            truth = part.report(truth, public)

    def conduct(self, claim: StatementOfWork, truth: StatementOfWork, public: PublicInformation) -> Conduct:
        """Return the conduct of the last part for the report of the others."""
        for part in self.parts[:-1]:
            part.check(claim, public)
            claim = part.report(claim, public)
        return self.parts[-1].conduct(claim, truth, public)

    def near(self) -> dict[str, Bounds]:
        """Return those of the parts, under ``<place>.<name>``."""
        return {f"{i}.{name}": pair for i, part in enumerate(self.parts) for name, pair in part.near().items()}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return sum(part.distance(truth, public) for part in self.parts)

    def words(self, truth: StatementOfWork) -> str:
        return " and ".join(part.words(truth) for part in self.parts)

    def data(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [part.data() for part in self.parts]}

    def with_values(self, values: Mapping[str, float]) -> Self:
        """Replace numbers of the parts, named ``<place>.<name>``."""
        own: list[dict[str, float]] = [{} for _ in self.parts]
        for path, value in values.items():
            place, _, name = path.partition(".")
            own[int(place)][name] = value
        return replace(self, parts=tuple(p.with_values(v) if v else p for p, v in zip(self.parts, own, strict=True)))


def count_of(n: int, what: str) -> str:
    """Return "1 node", "2 nodes"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def restated(
    truth: StatementOfWork,
    *,
    birth: int | None = None,
    concurrency: int | None = None,
    value: ValueCurve | None = None,
    points: list[Requirement] | None = None,
    restarts: bool | None = None,
    patience: int | None = None,
    checkpoint: int | None = None,
) -> StatementOfWork:
    """Return ``truth`` with some of its parts replaced; points without probability, and checkpoint 0, are not reported.

    Raises InvalidReportError if no point is left, or if shapes, which stay, do not fit concurrency and durations.
    """
    if points is not None:
        points = [point for point in points if point.probability > LEAST]
        if not points:
            raise InvalidReportError("nothing is left of the law: expected a case with positive probability")
    return StatementOfWork(
        truth.birth if birth is None else birth,
        truth.concurrency if concurrency is None else concurrency,
        truth.value if value is None else value,
        truth.requirements if points is None else points,
        truth.shapes,
        restarts=truth.restarts if restarts is None else restarts,
        patience=truth.patience if patience is None else patience,
        checkpoint=truth.checkpoint if checkpoint is None else checkpoint or None,
    )
