"""What is measured, what it is called in the table, and how much of the bare time it may take at most."""
from collections import namedtuple

Measure = namedtuple("Measure", "program benchmark text at_most")

_FORKS = [(threads, held) for threads in (1, 16, 64, 256) for held in (0, 1)]


def _fork(kind, threads, held):
    words = "the call" if kind == "call" else "until the child is reaped"
    others = f"{threads} other thread{'s' if threads > 1 else ''}"
    return f"`fork()`, {others}{', a held lock' if held else ''}, {words}"


LOCKS = [
    Measure("locks", "mutex/no_threads", "`pthread_mutex_t`, before the first thread", 1.50),
    Measure("locks", "std_mutex/no_threads", "`std::mutex`, before the first thread", 1.50),
    Measure("locks", "mutex/threads", "`pthread_mutex_t`, other threads exist", 1.20),
    Measure("locks", "std_mutex/threads", "`std::mutex`, other threads exist", 1.20),
    Measure("locks", "rwlock_read/threads", "`pthread_rwlock_t`, read", 1.25),
    Measure("locks", "semaphore/threads", "`sem_t`", 1.25),
    Measure("locks", "spinlock/threads", "`pthread_spinlock_t`", 1.25),
]
THREADS = [
    Measure("threads", "mutex/contended/real_time/threads:2", "`pthread_mutex_t`, contended by two threads", 1.05),
    Measure("threads", "condition/ping_pong/real_time", "condition variable, there and back", 1.05),
    Measure("threads", "thread/create_and_join/real_time", "`pthread_create` and `pthread_join`", 1.10),
]
FORKS = [Measure("forks", f"fork_{kind}/threads:{threads}/held:{held}/manual_time", _fork(kind, threads, held), None)
         for kind in ("call", "whole") for threads, held in _FORKS]
FORKS += [Measure("forks", f"fork_{kind}_1GiB/threads:1/held:{held}/manual_time", _fork(kind, 1, held) + ", 1 GiB in use", None)
          for kind in ("call", "whole") for held in (0, 1)]
LIBRARIES = [
    Measure("openmp", "openmp/empty_parallel/real_time", "empty `omp parallel`, libgomp", 1.00),
    Measure("blas", "openblas/dgemm/64/real_time", "OpenBLAS `dgemm`, 64 x 64", 1.00),
    Measure("blas", "openblas/dgemm/512/real_time", "OpenBLAS `dgemm`, 512 x 512", 1.00),
]
STARTS = [Measure("threads", "start/true_1000/iterations:1000/real_time", "`/bin/true` started, mean of 1000", 1.15)]
COMMANDS = [
    Measure("command", "make", "`make -j2` of the shim's sources", 1.05),
    Measure("command", "configure", "a `configure` script of autoconf", 1.05),
]
GROUPS = {"locks": LOCKS, "threads": THREADS, "forks": FORKS, "libraries": LIBRARIES, "starts": STARTS,
          "commands": COMMANDS}

# The same programs under what else watches locks; of forks, a few.
COMPARED = ["locks", "threads"]
COMPARED_FORKS = [f"fork_call/threads:{threads}/held:0/manual_time" for threads in (1, 64)]
