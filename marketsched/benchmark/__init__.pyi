from .scoring import benchmark as benchmark
from .scoring import contestants as contestants
from .tasks import PUBLIC as PUBLIC
from .tasks import Task as Task
from .tasks import log_tasks as log_tasks
from .tasks import own_tasks as own_tasks
