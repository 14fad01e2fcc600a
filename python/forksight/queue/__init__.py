"""A queue of Python objects in shared memory, and locks, events, barriers, semaphores, values and a pool for several processes.
All of them stay usable if a process is killed. docs/queue-python.md says how they differ from multiprocessing."""
import sys

if sys.version_info < (3, 8):
    raise ImportError("forksight.queue needs Python 3.8 or later, this is " + sys.version.split()[0])

from ._barrier import Barrier, BrokenBarrierError  # noqa: E402
from ._errors import Closed, Empty, Error, Full, NoConsumer, ProducerDied, TooLarge  # noqa: E402
from ._locks import Event, Lock, Value  # noqa: E402
from ._pool import AsyncResult, Pool, RemoteError, RemoteTraceback, WorkerKilled  # noqa: E402
from ._queue import Loan, Queue  # noqa: E402
from ._sync import BoundedSemaphore, Condition, RLock, Semaphore  # noqa: E402
from ._tensors import Tensor  # noqa: E402

__all__ = ["AsyncResult", "Barrier", "BoundedSemaphore", "BrokenBarrierError", "Closed", "Condition", "Empty", "Error", "Event", "Full", "Loan",
           "Lock", "NoConsumer", "Pool", "ProducerDied", "Queue", "RLock", "RemoteError", "RemoteTraceback", "Semaphore", "Tensor", "TooLarge",
           "Value", "WorkerKilled"]
