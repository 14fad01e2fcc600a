"""tested_fixes.py FORKSIGHT DIAGNOSE CASES: checks that a case tests each fix that a source in DIAGNOSE marks as tested.

A row of the table TESTED contains the beginning of the fix's text. For each rule that gives this fix, the row names a case and
the way in which the case follows the fix: "repaired" (the twin), another variant about which forksight reports nothing, options of
`forksight run`, or "silent" (forksight reports nothing about the case itself). A case that is not "silent" must expect a finding
of the rule. The tests case.* show that the cases meet their expectations. This test fails for a mark without a row, for a row
without a mark, and for a row that contradicts the expectations of its cases.

A remedy in advice.cpp has no row. Instead, the table of contexts in advice.cpp names the tests of the remedy, if the
remedy has any. A test is a variant that does what the remedy says. forksight must report nothing about the variant. The
name of the variant without its last part is the name of a case. This case must expect a finding of the rule.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

RECOVER, ABORT = "--on-orphan=recover", "--on-orphan=abort"
SELF_HELD = tuple(("self-held-lock", f"self_held_kinds.{kind}", "--cure=self-held")
                  for kind in ("errorcheck", "recursive", "robust", "pi", "rwlock")) + (("self-held-lock", "self_held_lock", "--cure=self-held"),)
ORPHANS = (("orphaned-mutex", "orphaned_mutex.O2"), ("orphaned-mutex", "orphaned_recursive_mutex"), ("orphaned-rwlock", "orphaned_rwlock_reader"),
           ("orphaned-rwlock", "orphaned_rwlock_writer"), ("orphaned-spinlock", "orphaned_spinlock"), ("orphaned-semaphore", "orphaned_semaphore"))
POOL = ("lost-openmp-pool", "lost_openmp_pool")
TESTED = {
    # locks.cpp
    "Release {} on every way out of {}": (("orphaned-mutex", "holder_ended", "repaired"),),
    "Exec right after fork(): then no lock of the parent matters.":
        tuple((rule, "exec_with_locks_held", "silent") for rule in sorted({rule for rule, _ in ORPHANS})),
    "To keep a job running for now: `forksight run --on-orphan=recover": tuple((*orphan, RECOVER) for orphan in ORPHANS),
    "To fail at once instead of hanging: `forksight run --on-orphan=abort": tuple((*orphan, ABORT) for orphan in ORPHANS),
    # fixes that only one rule gives
    "Keep running under `{}`: it cures this at each fork.": SELF_HELD,
    "Run it under `{}`: the child's thread becomes the lock's owner.": SELF_HELD,
    "Re-initialise {} in the child, in a pthread_atfork() child handler": (("self-held-lock", "self_held_kinds.recursive", "repaired"),),
    "Make it a normal mutex (PTHREAD_MUTEX_NORMAL, std::mutex) if it need not be recursive: those":
        (("self-held-lock", "self_held_lock", "repaired"),),
    "Keep running under `forksight run --cure=quiesce-libc=MS": (("libc-lock-in-flight", "call_that_ends", "--cure=quiesce-libc=20000"),),
    "Run it under `forksight run --cure=quiesce-libc=MS": (("libc-lock-in-flight", "call_that_ends", "--cure=quiesce-libc=20000"),),
    "If the future belongs to a ThreadPoolExecutor, make the executor in the child, after the fork.": (("lost-wakeup", "python.executor", "repaired"),),
    "Start workers with multiprocessing.set_start_method": (("python-lock-orphaned", "python.start_methods", "forkserver"),
                                                            ("python-lock-orphaned", "python.start_methods", "spawn")),
    "Or fork before the first thread is started.": (("python-lock-orphaned", "python.start_methods", "before"),),
    "For a lock of your own: os.register_at_fork(before=lock.acquire": (("python-lock-orphaned", "python.lock", "repaired"),),
    "Import the module before the thread is started.": (("python-lock-orphaned", "python.module_import", "repaired"),),
    "Start the child with multiprocessing.Process: then the queue": (("lost-feeder-thread", "python.feeder", "repaired"),),
    "Create the queue with options::atfork_handlers": (("lost-feeder-thread", "feeder_items", "repaired"),),
    "Take these locks in one and the same order everywhere": (("lock-order-inversion", "lock_order_inversion", "repaired"),),
    "Guard {} with pthread_atfork(): lock it in the prepare handler, and unlock it in the parent handler and in the child handler.": (("racy-orphan", "racy_orphan", "repaired"),),
    "Close the inherited epoll descriptor in the child": (("epoll-shared", "epoll_shared", "repaired"),),
    "Connect after fork(), each process for itself.": (("connection-shared", "connection_shared", "repaired"),),
    "Call fflush(NULL) before fork().": (("stdio-duplicated", "output_twice", "repaired"),),
    "End a child that has printed nothing of its own by _exit()": (("stdio-duplicated", "output_twice", "left"),),
    "Call srandom() or srand() in each child": (("rng-state-duplicated", "same_random_numbers", "repaired"),),
    "Take the lock in the child, after fork().": (("file-lock-lost", "file_lock_lost", "repaired"),),
    "Let the child close its descriptor instead": (("file-lock-shared", "file_lock_shared", "repaired"),),
    "Start such a thread in the child, too": (("signal-thread-lost", "signal_thread_lost", "repaired"),),
    "Arm the timer in the child, too, after fork()": (("timer-lost", "timer_lost", "repaired"),),
    "If a forked child does not exec, end it by _exit()": (("inherited-exit-handlers", "exit_in_child", "repaired"),),
    "Call _exit() where exec failed in a child of vfork()": (("vfork-misuse", "vfork_exits", "repaired"),),
    "Use fork(), which resets these locks in the child.": (("atfork-bypassed", "stream_after_bare_fork", "repaired"),),
    "In the child call nothing but async-signal-safe functions": (("fork-in-signal-handler", "fork_in_handler", "repaired"),),
    "Make {} anew in the child, in a pthread_atfork() child handler: pthread_cond_init()": (("orphaned-condvar", "orphaned_condvar", "repaired"),),
    "To keep a job running for now: `forksight run --cure=condvars": (("orphaned-condvar", "orphaned_condvar", "--cure=condvars"),),
    "Make {} anew in the child, in a pthread_atfork() child handler: pthread_barrier_init()": (("orphaned-barrier", "orphaned_barrier", "repaired"),),
    "Run it under `forksight run --omp=rebuild -- ...`: the child has no old pool": (("atfork-child-stuck", "pool_paused_in_child", "--omp=rebuild"),),
    "Run it under `forksight run --omp=rebuild -- ...`: the child makes a fresh pool": ((*POOL, "--omp=rebuild"),),
    "Or `forksight run --omp=quiesce": ((*POOL, "--omp=quiesce"),),
    "Or `forksight run --omp=clamp": ((*POOL, "--omp=clamp"),),
    "Keep running under `forksight run {} -- ...`: it cures this at each fork.":
        ((*POOL, "--omp=rebuild"), (*POOL, "--omp=quiesce"), (*POOL, "--omp=clamp")),
    "Make the first CUDA call in the children": (("cuda-used-after-fork", "cuda_by_symbol", "repaired"),),
    "Exec in the child: a new program can initialise CUDA for itself.": (("cuda-used-after-fork", "cuda_harmless.exec", "silent"),),
    "Let each importer close the memory (cuIpcCloseMemHandle) and tell the exporter": (("cuda-ipc-exporter-gone", "cuda_ipc_freed", "repaired"),),
    "Use the pointer that the process has": (("cuda-ipc-same-process", "cuda_ipc_same_process", "repaired"),),
    "Keep a table of what is open, by handle": (("cuda-ipc-opened-twice", "cuda_ipc_opened_twice", "repaired"),),
    "Watch the importers (pidfd_open": (("cuda-ipc-limbo", "cuda_ipc_limbo", "repaired"),),
    "Wait for a condition variable in a loop that checks the state itself": (("deadlock", "missed_signal", "repaired"),),
    "A task must not wait for a task of its own pool": (("deadlock", "task_in_own_pool", "repaired"),),
    "Set a value or an exception on each way out of the code that should set it": (("deadlock", "promise_never_set", "repaired"),),
    "Make the barrier for as many threads as arrive at it": (("deadlock", "barrier_lacks_party", "repaired"),),
    "Await with a time limit (asyncio.wait_for), and treat its end as an error.": (("pipe-deadlock", "python.tasks_cycle", "timed"),),
    "Call {} only in the parent: let the child do other work": (("mpi-after-fork", "mpi_after_fork", "repaired"),),
}
FIX = re.compile(r"fixes\.push_back\(\s*\{(.*?)\}\);", re.DOTALL)
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
MARK = re.compile(r",\s*(?:true|is_tested\w*(?:\([^()]*\))?)\s*$")


def marked_fixes(folder):
    """Yields (slug of the rule, text) of each fix that is marked as tested. The slug is "" if several rules share the source."""
    for path in sorted(Path(folder).rglob("*.cpp")):
        slug = path.stem.replace("_", "-") if path.parent.name == "rules" else ""
        for found in FIX.finditer(path.read_text()):
            if MARK.search(found[1]):
                yield slug, "".join(TEXT.findall(found[1])).replace('\\"', '"')


CONTEXT_TEST = re.compile(r'Test\{"([^"]*)",\s*"([^"]*)"\}')


def problems_of_contexts(cases, text):
    """Returns the errors in the tests that the table of contexts names."""
    tests = CONTEXT_TEST.findall(text)
    problems = [] if len(tests) > 7 else [f"only {len(tests)} tests of contexts are read"]
    for rule, by in tests:
        problem = problem_of(cases, rule, *by.rsplit(".", 1)) if by in cases else f"there is no case {by}"
        problems += [f"advice.cpp: {problem}"] if problem else []
    return problems


def is_silent(case):
    return case is not None and case["expected"]["bare"] == "ok" and not case["expected"]["findings"]


def twin_of(cases, name, variant):
    """Returns the given variant of a case. If the case is a variant itself, returns the given variant of its source."""
    names = (f"{name}.{variant}", f"{name.rpartition('.')[0]}.{variant}")
    return next((cases[one] for one in names if one in cases), None)


def problem_of(cases, rule, name, how):
    """Returns the error in a row, or "" if the row is right."""
    case = cases.get(name)
    if case is None:
        return f"there is no case {name}"
    if how == "silent":
        return "" if is_silent(case) else f"{name} is not silent"
    if all(finding["rule"] != rule for finding in case["expected"]["findings"]):
        return f"{name} expects no finding {rule}"
    if not how.startswith("--"):
        return "" if is_silent(twin_of(cases, name, how)) else f"{name} has no twin {how} about which forksight must report nothing"
    runs = [run for run in case["expected"]["runs"] if how in run["options"]]
    if not runs:
        return f"{name} has no run with {how}"
    return "" if any(run["outcome"] in ("cured", "none", "error") for run in runs) else f"{name} does not end well with {how}"


def problems_of_marks(fixes, tested):
    problems = []
    unused = set(tested)
    for slug, text in fixes:
        begin = next((begin for begin in tested if text.startswith(begin)), None)
        if begin is None:
            problems.append(f"marked as tested, but no row names a case for it: {text}")
            continue
        unused.discard(begin)
        others = [rule for rule, _, _ in tested[begin] if slug and rule != slug]
        if others:
            problems.append(f"{slug} marks a fix that was tested for {others}: {text}")
    return problems + [f"no fix that is marked as tested begins with this: {begin}" for begin in sorted(unused)]


def self_check(cases):
    """Tests the checks above with wrong rows, marks and contexts. Returns those that the checks do not refuse."""
    wrong = (("orphaned-mutex", "no_such_case", "repaired"), ("orphaned-rwlock", "orphaned_mutex.O2", "repaired"),
             ("orphaned-mutex", "orphaned_mutex.O2", "silent"), ("orphaned-mutex", "orphaned_mutex.O2", "no-such-twin"),
             ("orphaned-mutex", "orphaned_mutex.O2", "--cure=condvars"), ("fork-inside-parallel-region", "fork_inside_region", "--omp=rebuild"))
    problems = [f"the check does not refuse {row}" for row in wrong if not problem_of(cases, *row)]
    rows = {"Mend it": (("orphaned-mutex", "orphaned_mutex.O2", "repaired"),)}
    for fixes in ([("", "Pray")], [], [("timer-lost", "Mend it.")]):
        if not problems_of_marks(fixes, rows):
            problems.append(f"the check does not refuse {fixes}")
    for test in ('Test{"orphaned-mutex", "no_such_case.repaired"}', 'Test{"orphaned-rwlock", "orphaned_mutex.O2"}'):
        if len(problems_of_contexts(cases, test * 10)) != 10:
            problems.append(f"the check does not refuse {test}")
    return problems


def main():
    forksight, diagnose, folder = sys.argv[1:]
    listed = subprocess.run([forksight, "suite", "list", "--format", "json", "--cases", folder], capture_output=True, text=True,
                            timeout=50, check=True).stdout
    cases = {case["name"]: case for case in json.loads(listed)["cases"]}
    fixes = list(marked_fixes(diagnose))
    if len(fixes) < 40:
        sys.exit(f"only {len(fixes)} marks are read")
    problems = self_check(cases) + problems_of_marks(fixes, TESTED)
    problems += problems_of_contexts(cases, Path(diagnose, "advice.cpp").read_text())
    for begin, rows in TESTED.items():
        problems += [f"{begin}: {problem}" for row in rows for problem in [problem_of(cases, *row)] if problem]
    print("\n".join(problems) or f"all {len(fixes)} marks name a case that tests the fix")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
