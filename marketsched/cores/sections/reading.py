"""Read the section ``cluster`` of a scenario with the class of its core."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from marketsched.cores.sections.core import ClusterCore

DEFAULT = "ogasched"  # the core of a section that names none
_SECTIONS = {"ogasched": "OgaSchedCluster", "esdp": "EsdpCluster", "opm": "OpmCluster"}  # class, in a module of its own


def read_cluster(x: object) -> ClusterCore:
    """Return the section that a mapping describes; the classes of its core alone are imported.

    Raises
    ------
    ValidationError, PydanticCustomError
        If ``x`` is neither a section nor a mapping, or does not fit; to be raised inside a validation.
    """
    core = x.get("core", DEFAULT) if isinstance(x, Mapping) else getattr(x, "core", None)
    if core not in _SECTIONS:
        if not isinstance(x, Mapping):
            raise PydanticCustomError("model_type", "a table of keys")
        legal = {"discriminator": "core", "tag": core, "expected_tags": ", ".join(map(repr, _SECTIONS))}
        raise PydanticCustomError("union_tag_invalid", "which", legal)
    model: Any = getattr(import_module(f"marketsched.cores.sections.{core}"), _SECTIONS[core])
    section: ClusterCore = model.model_validate({"core": core, **x} if isinstance(x, Mapping) else x)
    return section
