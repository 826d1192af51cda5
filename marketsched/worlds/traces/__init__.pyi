from .catalogue import DIGESTS as DIGESTS
from .catalogue import TRACES as TRACES
from .catalogue import get_trace as get_trace
from .catalogue import known_traces as known_traces
from .catalogue import verify as verify
from .trace import Trace as Trace
from .trace import data_folder as data_folder
