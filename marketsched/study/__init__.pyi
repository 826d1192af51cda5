from .sweeps.runs import Case as Case
from .sweeps.runs import SweepRun as SweepRun
from .sweeps.runs import SweepSpec as SweepSpec
from .sweeps.runs import runs_of as runs_of
from .sweeps.sweeping import SweepResult as SweepResult
from .sweeps.sweeping import sweep as sweep
