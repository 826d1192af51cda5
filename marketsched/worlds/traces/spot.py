"""Two fleets of spot machines on Amazon: when nodes joined and left.

Source: MIT; Thorpe et al., "Bamboo", NSDI 2023.
"""

from __future__ import annotations

import pandas as pd

from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.folder import Source
from marketsched.worlds.traces.tables import Column, read_table, whole

NODES = (Column("trace", "str"), whole("time_ms", 64), Column("event", "str"), Column("node", "str"))


def read_nodes(source: Source = None) -> pd.DataFrame:
    """Return every event, one row each, fleet by fleet in order of time.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``trace`` (the fleet: ``p3`` or ``g4dn``), ``time_ms`` (int64, since the fleet's start), ``event``
        (``add`` or ``remove``), ``node`` (text). A node is added once and removed at most once; what is
        left at the end is cut off.

    Raises
    ------
    MissingDataError
        If the folder or the file is not there.
    TraceError
        If the file is damaged or malformed; the message names file and line.
    """
    return read_table(TRACES["spot-nodes"].path(source), NODES)
