from . import dask_workers as dask_workers
from . import hindsight as hindsight
from . import instance as instance
from . import kept_results as kept_results
from . import parallel as parallel
from . import replaying as replaying
from . import running as running
from . import workers as workers
