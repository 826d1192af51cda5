from . import best_response as best_response
from . import comparing as comparing
from . import curves as curves
from . import markets as markets
from . import repeated_market as repeated_market
from . import runs as runs
from . import turns as turns
