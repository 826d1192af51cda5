from .agents.channels import ChannelGame as ChannelGame
from .agents.core_market import CoreMarket as CoreMarket
from .agents.games import play_out as play_out
from .agents.jobs import JobGame as JobGame
from .agents.ports import PortGame as PortGame
from .audit.checking import check_policy as check_policy
