"""Read the section ``cluster`` of a scenario with the class of its core."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from marketsched.cores.core import CORES, DEFAULT

if TYPE_CHECKING:
    from marketsched.cores.sections.core import ClusterCore


def read_cluster(x: object) -> ClusterCore:
    """Return the section that a mapping describes; the classes of its core alone are imported.

    Raises
    ------
    ValidationError, PydanticCustomError
        If ``x`` is neither a section nor a mapping, or does not fit; to be raised inside a validation.
    """
    core = x.get("core", DEFAULT) if isinstance(x, Mapping) else getattr(x, "core", None)
    if core not in CORES:
        if not isinstance(x, Mapping):
            raise PydanticCustomError("model_type", "a table of keys")
        legal = {"discriminator": "core", "tag": core, "expected_tags": ", ".join(map(repr, CORES))}
        raise PydanticCustomError("union_tag_invalid", "which", legal)
    module, _, name = CORES[core].section.partition(":")
    model: Any = getattr(import_module(module), name)
    section: ClusterCore = model.model_validate({"core": core, **x} if isinstance(x, Mapping) else x)
    return section
