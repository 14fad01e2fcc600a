"""The measures, their names in the table, and their limits as ratios to the bare time."""
from collections import namedtuple

# `figure` is the name of the benchmark's counter that is the result. `asks` has the names of the environment variables that are
# set to 1 for the shim.
Measure = namedtuple("Measure", "program benchmark text at_most figure asks", defaults=["figure", ()])

_FORKS = [(threads, held) for threads in (1, 16, 64, 256) for held in (0, 1)]


def _fork(figure, threads, held, heap=False):
    words = {"call": "the call", "whole": "until the child is reaped"}[figure]
    others = f"{threads} other thread{'s' if threads > 1 else ''}"
    return Measure("forks", f"fork{'_1GiB' if heap else ''}/threads:{threads}/held:{held}",
                   f"`fork()`, {others}{', a held lock' if held else ''}, {words}{', 1 GiB in use' if heap else ''}",
                   None, figure)


LOCKS = [
    Measure("locks", "mutex/no_threads", "`pthread_mutex_t`, before the first thread", 1.50),
    Measure("locks", "std_mutex/no_threads", "`std::mutex`, before the first thread", 1.50),
    Measure("locks", "mutex/threads", "`pthread_mutex_t`, other threads exist", 1.20),
    Measure("locks", "std_mutex/threads", "`std::mutex`, other threads exist", 1.20),
    Measure("locks", "rwlock_read/threads", "`pthread_rwlock_t`, read", 1.25),
    Measure("locks", "semaphore/threads", "`sem_t`", 1.25),
    Measure("locks", "spinlock/threads", "`pthread_spinlock_t`", 1.25),
]
# The difference of these two measures is the cost of the annotations.
ANNOTATIONS = [
    Measure("annotate", "spin_lock/bare", "a spin lock of the program's own", None),
    Measure("annotate", "spin_lock/annotated", "a spin lock of the program's own, annotated", None),
]
_ORDER, _PREDICT = ("FORKSIGHT_LOCK_ORDER",), ("FORKSIGHT_PREDICT",)
# These measures show what the options --lock-order and --predict cost. The measures with neither option are taken in
# the same rounds. The measures with neither option have limits, because an option that is not given must cost nothing.
FORESIGHT = [
    Measure("locks", "mutex/threads", "`pthread_mutex_t`, with neither option", 1.20),
    Measure("locks", "mutex/threads", "`pthread_mutex_t`, with `--lock-order`", None, asks=_ORDER),
    Measure("locks", "mutex/threads", "`pthread_mutex_t`, with `--predict`", None, asks=_PREDICT),
    Measure("locks", "nested_mutexes/threads", "a mutex while another one is held, with neither option", 1.20),
    Measure("locks", "nested_mutexes/threads", "a mutex while another one is held, with `--lock-order`", None, asks=_ORDER),
    Measure("locks", "nested_mutexes/threads", "a mutex while another one is held, with `--predict`", None, asks=_PREDICT),
    Measure("locks", "nested_mutexes/threads", "a mutex while another one is held, with both options", None, asks=_ORDER + _PREDICT),
]
THREADS = [
    Measure("threads", "mutex/contended", "`pthread_mutex_t`, contended by two threads", 1.05),
    Measure("threads", "condition/ping_pong", "condition variable, there and back", 1.05),
    Measure("threads", "thread/create_and_join", "`pthread_create` and `pthread_join`", 1.10),
]
FORKS = [_fork(figure, threads, held) for figure in ("call", "whole") for threads, held in _FORKS]
FORKS += [_fork(figure, 1, held, heap=True) for figure in ("call", "whole") for held in (0, 1)]
LIBRARIES = [
    Measure("openmp", "openmp/empty_parallel", "empty `omp parallel`, libgomp", 1.00),
    Measure("blas", "openblas/dgemm/64", "OpenBLAS `dgemm`, 64 x 64", 1.00),
    Measure("blas", "openblas/dgemm/512", "OpenBLAS `dgemm`, 512 x 512", 1.00),
]
STARTS = [Measure("threads", "start/true", "`/bin/true` started", 1.15)]
COMMANDS = [
    Measure("command", "make", "`make -j2` of some of the shim's sources", 1.05),
    Measure("command", "configure", "a `configure` script of autoconf", 1.05),
]
GROUPS = {"locks": LOCKS, "annotations": ANNOTATIONS, "foresight": FORESIGHT, "threads": THREADS, "forks": FORKS, "libraries": LIBRARIES,
          "starts": STARTS, "commands": COMMANDS}

# The measures whose programs also run under other tools that watch locks. They include only two of the measures of forks.
COMPARED = [*LOCKS, *THREADS, _fork("call", 1, 0), _fork("call", 64, 0)]
