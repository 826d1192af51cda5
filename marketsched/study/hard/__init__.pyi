from . import adversary as adversary
from . import annealing as annealing
from . import birth_sequences as birth_sequences
from . import instance_trial as instance_trial
from . import sequence_changes as sequence_changes
