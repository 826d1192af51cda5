from .efficient import bundle_vcg as bundle_vcg
from .efficient import clarke_vcg as clarke_vcg
from .efficient import expected_externality as expected_externality
from .efficient import unit_demand_vcg as unit_demand_vcg
from .finite_mechanism import FiniteMechanism as FiniteMechanism
from .single_item import first_price as first_price
from .single_item import second_price as second_price
