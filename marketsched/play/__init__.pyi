from . import hindsight as hindsight
from . import replaying as replaying
from . import running as running
from . import versions as versions
from . import workers as workers
