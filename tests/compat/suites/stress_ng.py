"""Runs stress-ng. Each stressor is a unit. A stressor does a fixed number of operations, and checks their results itself."""
from frame import Unit

ABOUT = "stress-ng's stressors, each with its own checks"
PACKAGES = ["stress-ng"]
SOURCES = []
LEFT_OUT = {}
OPERATIONS = {
    "fork": 500, "vfork": 500, "clone": 500, "exec": 60, "pthread": 500, "mutex": 20000, "sem": 20000, "sem-sysv": 20000, "futex": 20000,
    "pipe": 20000, "sigpipe": 200, "sock": 200, "sockpair": 5000, "sockmany": 20, "udp": 2000, "eventfd": 5000, "epoll": 2000, "poll": 2000,
    "mq": 5000, "msg": 20000, "shm": 20, "shm-sysv": 50, "signal": 20000, "sigfd": 5000, "sigq": 5000, "sigsuspend": 2000, "sigpending": 5000,
    "sigrt": 2000, "sigabrt": 200, "sigchld": 500, "sigsegv": 2000, "timer": 2000, "timerfd": 500, "itimer": 1000, "alarm": 2, "nanosleep": 100,
    "wait": 200, "kill": 5000, "daemon": 20, "zombie": 200, "spawn": 100, "session": 100, "schedpolicy": 200, "yield": 20000, "switch": 20000,
    "flock": 5000, "lockf": 2000, "lease": 50, "dup": 50, "fifo": 5000, "aio": 500, "mmapfork": 2, "forkheavy": 100, "vm-rw": 20, "rlimit": 20,
    "malloc": 5000, "stack": 20, "pty": 5, "procfs": 2, "resched": 5, "membarrier": 100, "tee": 200, "splice": 2000, "affinity": 100, "context": 500,
    "dynlib": 20, "tsc": 100, "set": 50, "get": 20, "peterson": 1000, "dekker": 1000, "randlist": 5, "hsearch": 50, "qsort": 3, "cpu": 20, "matrix": 50,
}
SECONDS = 30


def prepare(_cache):
    pass


def units(_cache):
    for name, count in OPERATIONS.items():
        yield Unit(name, ["stress-ng", "--temp-path", "/tmp", "--oom-avoid", "--verify", "-t", "20", f"--{name}", "2", f"--{name}-ops", str(count)], seconds=SECONDS)
