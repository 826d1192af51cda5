from . import folder as folder
from . import records as records
from . import runs as runs
from . import sweeping as sweeping
