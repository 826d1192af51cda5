from . import comparing as comparing
from . import contest as contest
from . import flat_prices as flat_prices
from . import loads as loads
from . import mechanisms as mechanisms
from . import plan as plan
from . import value_rules as value_rules
