"""A reader of logs: what `sacct -X -P -o User,JobName,Submit,ElapsedRaw,TimelimitRaw,NNodes` prints, and its market."""

import pandas as pd

from marketsched.mechanisms.legal import Positive
from marketsched.worlds import workload_of_log

OURS = {"User": "user", "JobName": "executable", "ElapsedRaw": "run_s", "NNodes": "processors"}


def read_sacct(path):
    """Jobs of a Slurm cluster, as sacct prints them."""
    table = pd.read_csv(path, sep="|").rename(columns=OURS)
    submitted = pd.to_datetime(table.pop("Submit"))
    table["submit_s"] = (submitted - submitted.min()).dt.total_seconds()
    table["requested_s"] = 60.0 * pd.to_numeric(table.pop("TimelimitRaw"), errors="coerce")
    return table


def sacct_market(rng, path: str, days: Positive = 1.0, load: Positive = 1.2):
    """Return the market of the last days of a log."""
    return workload_of_log(read_sacct(path), rng=rng, name="sacct", days=days, load=load)
