"""The file of several markets: a scenario for each site."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator

from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import read_scenario, with_changes
from marketsched.config.strict_yaml import Name, Strict, read_yaml, validated
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.results.output import file_name

ALL = "all"  # the folder of the common table


def _scenarios(x: object) -> dict[str, str | dict[str, Any]]:
    if not isinstance(x, Mapping) or not x:
        raise ValueError("a table of sites, each with the name of a scenario, a file, or a scenario written out")
    found: dict[str, str | dict[str, Any]] = {}
    for name, scenario in x.items():
        if not isinstance(name, str) or file_name(name) != name or name == ALL:
            legal = f"letters, digits, dots, dashes and underscores, not {ALL!r}: it becomes a folder's name"
            raise InvalidParameterError(place="name of a site", value=name, legal=legal)
        if not isinstance(scenario, (str, Mapping)) or not scenario:
            raise InvalidParameterError(place=name, value=scenario, legal="a scenario's name, a file, or its content")
        found[name] = scenario if isinstance(scenario, str) else dict(scenario)
    return found


class Sites(Strict):
    """Markets that share nothing, by the names of their sites.

    Attributes
    ----------
    name, description : str
        Their common name and description.
    sites : mapping of str to str or mapping
        For each site the name of a built-in scenario, a file beside this one, or a scenario written out.

    Examples
    --------
    >>> found = Sites.from_dict({"name": "two halls", "sites": {"north": "stochastic-mix", "south": "stochastic-mix"}})
    >>> [*found.scenarios()], found.seed_of("north", 0) == found.seed_of("south", 0)
    (['north', 'south'], False)
    """

    name: Name
    description: str = ""
    sites: Annotated[dict[str, Any], BeforeValidator(_scenarios)]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "sites") -> Self:
        """Return what ``data`` describes.

        Raises
        ------
        InvalidParameterError
            If a key is unknown or missing, or a name cannot become a folder's.
        """
        return validated(cls, data, source)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> tuple[Self, Path]:
        """Return the sites of a YAML file, and the folder in which scenario files are searched."""
        return cls.from_dict(read_yaml(Path(path)), source=str(path)), Path(path).parent

    def scenarios(self, folder: Path | None = None, changes: list[str] | None = None) -> dict[str, Scenario]:
        """Return every site's scenario, checked, with the same ``changes`` made to each; all must be markets."""
        found = {}
        for site, scenario in self.sites.items():
            with placed(f"sites.{site}"):
                content, source = scenario, site
                if isinstance(scenario, str):
                    beside = None if folder is None else folder / scenario
                    content, source = read_scenario(beside if beside is not None and beside.is_file() else scenario)
                content = with_changes(content, changes or [])
                found[site] = Scenario.from_dict(content, source=source, kind="market")
        return found

    def seed_of(self, site: str, seed: int) -> int:
        """Return the seed of a site: of its own, and the same whatever other sites there are."""
        words = np.random.SeedSequence([seed, *site.encode()]).generate_state(2, np.uint32)
        return int(words[0]) << 31 | int(words[1]) >> 1
