"""The configuration of a live market: that of `replay`, with a clock, and without a last round."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from marketsched.config.cluster_section import ClusterSection
from marketsched.config.configuration import ReplayConfig
from marketsched.config.strict_yaml import Strict, read_yaml, validated
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Positive, Share
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.registry import get
from marketsched.mechanisms.signatures import parameters_of

SHORTEST_ROUND, LONGEST_ROUND = 0.01, 1e8  # seconds: what a service keeps up with; about three years
YEARS = (2000, 2200)  # in which a market may begin
HIGHEST_VALUE = 1e9  # credits: charges are kept as whole millionths in 64 bits
MAY_CHANGE = ("requests_per_second",)  # of a market that is there: what no decision depends on
UNLIMITED = "unlimited"
ANNOUNCED_SHARE = 4  # one in so many of the nodes, by default the most that an owner announces


class ManualClock(Strict):
    """Rounds end when an operator says so."""

    kind: Literal["manual"]


class WallClock(Strict):
    """Round n ends at ``first_round`` + n ``round_seconds``; without ``first_round`` when the market is made."""

    kind: Literal["wall"]
    round_seconds: Annotated[float, Field(ge=SHORTEST_ROUND, le=LONGEST_ROUND)]
    first_round: str | None = None

    @field_validator("first_round")
    @classmethod
    def _utc(cls, text: str | None) -> str | None:
        return None if text is None else utc_text(moment(text))


Clock = Annotated[ManualClock | WallClock, Field(discriminator="kind")]


def counted(each: Mapping[str, Any], cluster: ClusterSection) -> int:
    """Return what amounts of a node, or of a task, count as: one node, or their devices if those are more."""
    devices = [name for name, resource in cluster.resources.items() if resource.device]
    return max(1, sum(math.ceil(float(each.get(name, 0))) for name in devices))


class LiveConfig(ReplayConfig):
    """Every key of the replay contract, and the keys of a running market."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")] = "market"
    horizon: Count = LAST_ROUND  # left out: the market goes on
    clock: Clock = ManualClock(kind="manual")
    requests_per_second: Positive = 1000.0  # of one token
    no_show_fee: Annotated[float, Field(ge=0, le=HIGHEST_VALUE)] = 1.0  # credits a node; of jobs that do not come
    no_show_share: Share = 0.5  # of the expected price of the plan, if that is more than the fee
    announced_nodes: Count | Literal["unlimited"] | None = None  # of one owner, before they come; None: `_announced`
    evicted_pay: Literal["used", "own", "nothing"] = "used"  # what evicted runs pay for: the rounds they used; or if
    # they made room for a job of their own group
    surprise_limit: Annotated[float, Field(ge=0, le=HIGHEST_VALUE)] = 20.0  # of `marketsched.live.surprise`; 0: none

    @model_validator(mode="after")
    def _charges_fit(self) -> Self:
        if self.max_value > HIGHEST_VALUE:
            legal = f"at most {HIGHEST_VALUE:g} credits in a live market"
            raise InvalidParameterError(place="max_value", value=self.max_value, legal=legal)
        return self

    @model_validator(mode="after")
    def _announced(self) -> Self:
        if (
            self.announced_nodes is None
        ):  # a quarter of the machine, and at least two jobs of any legal width that it holds
            there, on_a_node = self.capacity, 1
            if self.cluster is not None:  # as jobs are counted there
                sizes = [(counted(group.each, self.cluster), group.nodes) for group in self.cluster.groups]
                there, on_a_node = sum(size * nodes for size, nodes in sizes), max(size for size, _ in sizes)
            widest = min(self.max_concurrency * on_a_node, there)
            object.__setattr__(self, "announced_nodes", max(min(2 * widest, there), there // ANNOUNCED_SHARE))
        return self

    @model_validator(mode="after")
    def _no_fees_from_purses(self) -> Self:
        """With credits that renew nothing is charged but regular nodes: what is announced keeps nobody out."""
        if getattr(get("mechanism", self.mechanism), "has_purses", False):
            for key in ("no_show_fee", "no_show_share"):
                if key in self.model_fields_set and getattr(self, key):
                    legal = "0, or none: credits come by shares, and pay for regular nodes alone"
                    raise InvalidParameterError(place=key, value=getattr(self, key), legal=legal)
                object.__setattr__(self, key, 0.0)
        return self

    @property
    def most_announced(self) -> int | None:
        """The most nodes that one owner may announce before they come; None: no limit."""
        return self.announced_nodes if isinstance(self.announced_nodes, int) else None

    def mechanism_parameters(self) -> dict[str, Any]:
        """Return the mechanism's parameters beside sizes and rules: its rounds are as long as the clock says."""
        given, clock = super().mechanism_parameters(), self.clock
        if isinstance(clock, WallClock) and "round_seconds" in parameters_of(get("mechanism", self.mechanism)):
            given = {"round_seconds": clock.round_seconds, **given}
        return given

    def for_replay(self) -> dict[str, Any]:
        """Return the configuration with which ``marketsched replay`` plays an exported journal."""
        found = self.model_dump(mode="json", include=set(ReplayConfig.model_fields), exclude_none=True)
        del found["parameters"]
        given = self.mechanism_parameters()
        return {**found, "parameters": given} if given else found

    def stored(self) -> dict[str, Any]:
        """Return all of it as plain data, as the journal keeps it."""
        return self.model_dump(mode="json", exclude_none=True)

    def check_same(self, stored: Mapping[str, Any]) -> None:
        """Raise InvalidParameterError if a market with the ``stored`` configuration cannot go on with this one."""
        for key, now in self.stored().items():
            before = stored.get(key)
            if key == "clock" and isinstance(before, Mapping) and before.get("first_round") and now["kind"] == "wall":
                now = {"first_round": before["first_round"], **now}  # left out: as it was
            if key not in MAY_CHANGE and now != before:
                raise InvalidParameterError(place=key, value=now, legal=f"{before!r}, as this market was made with")


def live_config(config: LiveConfig | Mapping[str, Any] | str | PathLike[str]) -> LiveConfig:
    """Return the configuration that a mapping or a YAML file describes.

    Raises InvalidParameterError if a key is unknown, missing or out of range; the message names the place. Raises
    OSError if the file cannot be read.
    """
    if isinstance(config, LiveConfig):
        return config
    if isinstance(config, Mapping):
        return validated(LiveConfig, dict(config), "config")
    return validated(LiveConfig, read_yaml(config), str(config))


def moment(text: str) -> datetime:
    """Return the moment that an ISO 8601 text names; one without a zone is in UTC.

    Raises InvalidParameterError if it is none.
    """
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        if YEARS[0] <= found.year < YEARS[1]:
            return found
    except (ValueError, OverflowError):
        pass
    legal = f"a moment such as 2026-11-22T06:00:00Z, from {YEARS[0]} to {YEARS[1] - 1}"
    raise InvalidParameterError(place="first_round", value=text, legal=legal)


def utc_text(when: datetime) -> str:
    """Return a moment as the journal writes it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
