"""A site's Slurm configuration as a scenario: its order of jobs as parameters of ``fair-share`` or ``easy-backfill``.

Read are ``slurm.conf``, the accounts that ``sshare -alP`` prints, and the QOS of ``sacctmgr show qos -P``. Settings of
the order of jobs that no rule here models are listed. Source: the manual pages of slurm.conf, sshare and sacctmgr.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from marketsched.mechanisms.errors import InvalidParameterError

WEIGHTS = {"age": "weight_age", "fairshare": "weight_fair_share", "jobsize": "weight_size", "qos": "weight_qos"}
# Settings of the order of jobs that no parameter here stands for, unless they have the value that changes nothing.
NOT_MODELLED = {
    "priorityweightpartition": "0",
    "priorityweightassoc": "0",
    "priorityweighttres": "",
    "prioritysitefactorplugin": "",
    "priorityusageresetperiod": "none",
    "preempttype": "preempt/none",
    "preemptmode": "off",
    "schedulerparameters": "",
    "overtimelimit": "0",
    "accountingstorageenforce": "",
}
PARTITION = {
    "prioritytier": "1",
    "priorityjobfactor": "1",
    "tresbillingweights": "",
    "qos": "n/a",
    "preemptmode": "off",
    "maxnodes": "unlimited",
    **dict.fromkeys(("allowqos", "allowaccounts", "allowgroups"), "all"),
}
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$")
_RANGE = re.compile(r"\[([^]]*)\]")


class SiteRule(NamedTuple):
    """The order of jobs of a site.

    Attributes
    ----------
    mechanism : dict
        Section ``mechanism`` of a scenario.
    nodes : int or None
        That the configuration names.
    not_modelled : list of str
        Settings that change the order of jobs there, and not here.
    """

    mechanism: dict[str, Any]
    nodes: int | None
    not_modelled: list[str]


def site_rule(conf: Path, sshare: Path | None = None, qos: Path | None = None) -> SiteRule:
    """Return the rule that a Slurm configuration stands for.

    Parameters
    ----------
    conf : Path
        ``slurm.conf``.
    sshare, qos : Path, optional
        What ``sshare -alP`` and ``sacctmgr show qos -P`` print.

    Raises
    ------
    InvalidParameterError
        If a file is none of these, or a setting has no legal value; the message names the line.
    """
    lines = [(number, _pairs(line)) for number, line in _lines(conf)]
    settings = {key: (number, value) for number, pairs in lines for key, value in list(pairs.items())[:1]}
    if not {"clustername", "prioritytype", "schedulertype", "slurmctldhost", "nodename"} & settings.keys():
        raise InvalidParameterError(f"{conf}: no setting of Slurm's controller", legal="the file slurm.conf")
    said = {key: value for key, (_, value) in settings.items()}
    left = [f"{key}={said[key]}" for key, usual in NOT_MODELLED.items() if said.get(key, usual).lower() != usual]
    for _, pairs in lines:
        if "partitionname" in pairs:
            own = [f"{key}={pairs[key]}" for key, usual in PARTITION.items() if pairs.get(key, usual).lower() != usual]
            left += [f"partition {pairs['partitionname']}: {each}" for each in own]
    if len([1 for _, pairs in lines if "partitionname" in pairs]) > 1:
        left.append("several partitions: their nodes are one pool here")
    nodes = sum(
        _count(pairs["nodename"]) for _, pairs in lines if pairs.get("nodename", "default").lower() != "default"
    )
    if said.get("prioritytype", "priority/multifactor").lower() == "priority/basic":
        reserve = {"reserve": "strict"} if said.get("schedulertype", "").lower() == "sched/builtin" else {}
        return SiteRule({"name": "easy-backfill", "parameters": reserve}, nodes or None, left)
    parameters: dict[str, Any] = {
        name: float(_number(conf, *settings.get(f"priorityweight{key}", (0, "0")))) for key, name in WEIGHTS.items()
    }
    flags = said.get("priorityflags", "").lower().split(",")
    parameters["rule"] = "classic" if "no_fair_tree" in flags else "fair-tree"
    left += [f"priorityflags={flag}" for flag in flags if flag not in ("", "no_fair_tree", "fair_tree")]
    for key, name in (("prioritydecayhalflife", "half_life_hours"), ("prioritymaxage", "max_age_hours")):
        parameters[name] = _hours(conf, *settings.get(key, (0, "7-0")))
    if not parameters["half_life_hours"]:
        parameters["half_life_hours"] = 1e6
        left.append("prioritydecayhalflife=0: usage is as good as never forgotten (a half-life of 114 years)")
    parameters["favor_small"] = said.get("priorityfavorsmall", "no").lower() == "yes"
    if sshare is not None:
        places = dict(_shares(sshare))
        users = Counter(place.rpartition("/")[2] for place in places if not place.endswith("/"))
        for user in (name for name, count in users.items() if count > 1):
            first, *others = (place for place in places if place.rpartition("/")[2] == user)
            left += [f"sshare: {place}: {user} has one account here, that of {first}" for place in others]
            places = {place: share for place, share in places.items() if place not in others}
        parameters["shares"] = places
    if qos is not None:
        rows = _rows(qos, "Name", "Priority")
        left += [f"QOS {row['Name']}: priority {row['Priority']}" for row in rows if row["Priority"] not in ("0", "")]
        left += [
            f"QOS {row['Name']}: {name}={row[name]}" for row in rows for name in row
            if name.startswith(("Max", "Grp", "Preempt")) and row[name] and row[name] != "cluster"
        ]  # fmt: skip
    return SiteRule({"name": "fair-share", "parameters": parameters}, nodes or None, left)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the settings of a configuration with the number of their first line; ends of lines may be masked."""
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise InvalidParameterError(f"{path}: no text", legal="the file slurm.conf") from None
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first if begun else number
        begun += line.split("#")[0].rstrip() if not line.rstrip().endswith("\\") else line.rstrip()[:-1]
        if not line.rstrip().endswith("\\"):
            if begun.strip():
                yield first, begun.strip()
            begun = ""


def _pairs(line: str) -> dict[str, str]:
    """Return the settings of a line, names in small letters."""
    return {key.lower(): value.strip('"') for key, value in re.findall(r'(\w+)\s*=\s*("[^"]*"|\S+)', line)}


def _number(path: Path, line: int, text: str) -> int:
    if not text.isdigit():
        raise InvalidParameterError(f"{path}:{line}: {text!r}", legal="a whole number")
    return int(text)


def _hours(path: Path, line: int, text: str) -> float:
    """Return a time of Slurm in hours: minutes, hours:minutes:seconds, days-hours, or days-hours:minutes:seconds."""
    found = _TIME.match(text)
    if found is None:
        raise InvalidParameterError(
            f"{path}:{line}: {text!r}", legal="a time, as 7-0, 14-12:00:00, 12:00:00, or minutes"
        )
    days, *rest = (int(part) if part else 0 for part in found.groups())
    if found[1] is None and found[3] is None:
        return rest[0] / 60
    return 24 * days + rest[0] + rest[1] / 60 + rest[2] / 3600


def _count(names: str) -> int:
    """Return how many nodes an expression of Slurm names, as in ``c[001-040,051],login1``."""
    total = 0
    for part in re.split(r",(?![^[]*\])", names):
        product = 1
        for inside in _RANGE.findall(part):
            ends = [each.split("-") for each in inside.split(",")]
            product *= sum(int(each[-1]) - int(each[0]) + 1 for each in ends)
        total += product
    return total


def _rows(path: Path, *needed: str) -> list[dict[str, str]]:
    """Return the rows of a table with columns between bars."""
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    names = lines[0].split("|") if lines else []
    if not set(needed) <= set(names):
        raise InvalidParameterError(
            f"{path}: columns {', '.join(names)[:80]}", legal=f"{', '.join(needed)}, between bars"
        )
    return [dict(zip(names, line.split("|"), strict=False)) for line in lines[1:]]


def _shares(path: Path) -> Iterator[tuple[str, float | str]]:
    """Yield the places of a share tree and their shares: accounts are indented by their level, users name theirs."""
    above: Sequence[str] = []
    rows: list[Mapping[str, str]] = [*_rows(path, "Account", "User", "RawShares")]
    for row in rows:
        name, level = row["Account"].strip(), len(row["Account"]) - len(row["Account"].lstrip())
        share: float | str = "parent" if row["RawShares"] == "parent" else float(row["RawShares"] or 1)
        if row["User"].strip():
            yield "".join(f"{each}/" for each in above) + row["User"].strip(), share
            continue
        above = [*above[: max(level - 1, 0)], name] if name != "root" else []
        if above:
            yield "".join(f"{each}/" for each in above), share
