"""What Slurm adds to the tables of `marketsched.mechanisms.registry`: names only, nothing is loaded."""

ENTRIES = {
    "outside": {"slurm": "marketsched.slurm.slurm_audit:audit_slurm"},
    "result": {"slurm-lies": "marketsched.slurm.lies_kind:SlurmLiesKind"},
}
