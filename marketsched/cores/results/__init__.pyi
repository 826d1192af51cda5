from . import core_lies_kind as core_lies_kind
from . import jobs_figure as jobs_figure
from . import over_figure as over_figure
from . import policies_figure as policies_figure
from . import policies_kind as policies_kind
