"""Names of a package that are imported on first use, so that the import of the package is instant.

A package writes its table once, as *sub-module: names*, and the same names once more under
``TYPE_CHECKING`` for type checkers and editors; a test keeps the two equal. An exported name must
not be the name of a sub-module of the same package: importing the sub-module would replace it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, table: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose names are imported on first use.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    table : mapping of str to sequence of str
        Sub-module, relative to the package, to the names taken from it.

    Returns
    -------
    tuple of two functions
        To be assigned to ``__getattr__`` and ``__dir__`` of the package.

    Raises
    ------
    AttributeError
        From ``__getattr__``, for a name that is not in the table.
    """
    home = {name: f"{package}.{module}" for module, names in table.items() for name in names}
    namespace = vars(sys.modules[package])

    def __getattr__(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        namespace[name] = value  # the next access does not come here
        return value

    def __dir__() -> list[str]:
        return sorted({*namespace, *home})

    return __getattr__, __dir__
