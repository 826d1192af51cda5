from . import causes as causes
from . import levels as levels
from . import order as order
from . import pauses as pauses
from . import waits as waits
