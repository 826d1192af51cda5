"""What the formats of logs add to the tables of `marketsched.mechanisms.registry`: names only, nothing is loaded."""

from marketsched.worlds.logs import FORMATS, class_name

ENTRIES = {"workload": {kind: f"marketsched.worlds.logs.kinds:{class_name(kind)}" for kind in FORMATS}}
