"""Los Alamos National Laboratory: outages of the nodes of 23 systems, 1996 to 2005 (LA-UR-05-7318).

We recognise Los Alamos for providing these data.
"""

from __future__ import annotations

import re

import pandas as pd

from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.folder import Source
from marketsched.worlds.traces.tables import MINUTES, Column, read_table, whole

OUTAGES = (
    whole("system", low=1),
    Column("node", "float64", required=False, low=0),
    Column("sys_nodes", "float64", required=False, low=1),
    Column("procs_per_node", "float64", required=False, low=1),
    Column("node_prod", "str", required=False),
    Column("node_decom", "str", required=False),
    Column("purpose", "str", required=False),
    Column("fail_start", "datetime64[s]", time_format=MINUTES),
    Column("fail_fixed", "datetime64[s]", time_format=MINUTES),
    Column("cause", "str", required=False),
    Column("detail", "str", required=False),
)

QUOTED = re.compile(rb',"([^"\n]*)"(?=\r?$)', re.M)


def _plain(line: bytes) -> bytes:
    """Return a line with semicolons for the commas of a detail in quotes, which are dropped."""
    return QUOTED.sub(lambda found: b"," + found[1].replace(b",", b";"), line) if b'"' in line else line


def read_outages(source: Source = None) -> pd.DataFrame:
    """Return every outage, one row each, in order of system and node.

    Parameters
    ----------
    source : path, optional
        Data folder or file; None: the folder named by ``MARKETSCHED_DATA``.

    Returns
    -------
    DataFrame
        ``system`` (int32), ``node`` (from 0), ``sys_nodes, procs_per_node`` (float64; NaN: not
        known, as of all of system 17), ``node_prod, node_decom, purpose`` (text), ``fail_start,
        fail_fixed`` (local time, to the minute), ``cause, detail`` (text; commas in it are
        semicolons here). A node that never failed has no
        row. Outages of one node may overlap.

    Raises
    ------
    MissingDataError
        If the folder or the file is not there.
    TraceError
        If the file is cut short, damaged or malformed; the message names file and line.
    """
    return read_table(TRACES["lanl-outages"].path(source), OUTAGES, _plain)
