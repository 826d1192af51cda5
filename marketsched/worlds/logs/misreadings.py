"""What a table of text says of its jobs that a market of equal nodes does not honour: a sentence each.

Nothing is refused for it: a reader decides whether the answer is worth anything all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from marketsched.worlds.logs.columns import counts, plain

NODES = ("nnodes", "allocnodes", "nodes", "reqnodes", "nodecount", "resourcelistnodect")
CORES = ("ncpus", "alloccpus", "reqcpus", "cpus", "cores", "resourcelistncpus")
REQUESTS = ("alloctres", "reqtres")  # of Slurm
GPUS = ("gpu", "gpus", "ngpus", "numgpus", "gpucount", "gpurequest", "nvidiacomgpu", "resourcelistngpus")
MODELS = ("gpumodel", "gputype", "gpukind")
LEAST = 0.1  # the share of jobs from which on narrow ones are named
_GPU = r"gres/gpu(?::[^=,]+)?=[1-9]"


def not_honoured(rows: pd.DataFrame, names: Mapping[str, str]) -> list[str]:
    """Return what is not honoured of some rows of a file, a sentence each.

    Parameters
    ----------
    rows : DataFrame
        Text, the rows that are jobs.
    names : mapping of str to str
        Columns of the file by those of a log, as `columns_for` gives them.
    """
    by_name = {plain(str(name)): str(name) for name in reversed(rows.columns.tolist())}
    counted = names["processors"]
    return [*_parts(rows, counted), *_narrow(rows, by_name, counted), *_gpus(rows, by_name, counted)]


def _parts(rows: pd.DataFrame, counted: str) -> list[str]:
    """Say how many jobs ask for a part of a processor."""
    parts = rows[counted].str.strip().str.fullmatch(r"\d{1,3}m|\d*\.0*[1-9]\d*")
    if not parts.sum() >= LEAST * len(rows):
        return []
    return [f"{int(parts.sum()):,} of {len(rows):,} jobs ask for a part of one ({counted}) and count as whole ones"]


def _narrow(rows: pd.DataFrame, by_name: Mapping[str, str], counted: str) -> list[str]:
    """Say how many jobs use less than a node where whole nodes are counted."""
    cores = next((by_name[name] for name in CORES if name in by_name), None)
    if plain(counted) not in (*NODES, *REQUESTS) or cores is None:
        return []
    nodes, used = counts(rows[counted]), counts(rows[cores], "cpu")
    of_node = (used / nodes).max()
    narrow = int((used < of_node * nodes).sum())
    if not narrow >= LEAST * len(rows):
        return []
    return [
        f"{narrow:,} of {len(rows):,} jobs use less than whole nodes (of {of_node:.0f} cores) and count as whole ones: "
        f"--columns processors={cores} counts cores, also in --nodes"
    ]


def _gpus(rows: pd.DataFrame, by_name: Mapping[str, str], counted: str) -> list[str]:
    """Say how many jobs ask for GPUs, of which kinds, where these are not what is counted."""
    if plain(counted) in GPUS:
        return _kinds(rows, by_name)
    asked, kinds = pd.Series(False, index=rows.index), set[str]()
    for name in REQUESTS:
        if name in by_name:
            text = rows[by_name[name]]
            asked |= text.str.contains(_GPU, regex=True)
            kinds |= set(text.str.extract(r"gres/gpu:([^=,]+)=[1-9]")[0].dropna())
    for name in GPUS:
        if name in by_name:
            asked |= pd.to_numeric(rows[by_name[name]], errors="coerce").fillna(0) > 0
    if not asked.any():
        return []
    of = f" ({', '.join(sorted(kinds))})" if kinds else ""
    said = f"{int(asked.sum()):,} of {len(rows):,} jobs ask for GPUs{of}, which equal nodes do not know"
    return [f"{said}: marketsched scenarios FILE proposes a cluster with them"]


def _kinds(rows: pd.DataFrame, by_name: Mapping[str, str]) -> list[str]:
    """Say that GPUs of several models are one pool."""
    column = next((by_name[name] for name in MODELS if name in by_name), None)
    models = sorted(set(rows[column].str.strip()) - {""}) if column else []
    return [_one_pool(column or "", models)] if len(models) > 1 else []


def _one_pool(column: str, models: Sequence[str]) -> str:
    return f"GPUs of {len(models)} kinds ({', '.join(models[:4])}) are one pool here: column {column} is not used"
