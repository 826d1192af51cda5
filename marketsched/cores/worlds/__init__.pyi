from . import esdp as esdp
from . import ogasched as ogasched
from . import opm as opm
from . import pods as pods
from . import records as records
from . import world as world
