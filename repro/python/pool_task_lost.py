# Mechanism: a worker of a multiprocessing.Pool ends in the middle of its task, as one does that the kernel kills for want of
#            memory. The pool starts another worker and does not do the task again.
# To blame:  the end of the worker; the pool does not notice that a task was in the middle.
# User sees: apply() does not return, all workers are idle.
# Fix:       concurrent.futures.ProcessPoolExecutor, which raises BrokenProcessPool.
# Repaired:  so.
#
# EXPECT-BARE: hang
# EXPECT: lost-task likely hang victims=0
import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

context = multiprocessing.get_context("fork")


def work():
    os.kill(os.getpid(), signal.SIGKILL)


if sys.argv[1:] == ["repaired"]:
    with ProcessPoolExecutor(max_workers=2, mp_context=context) as executor:
        try:
            executor.submit(work).result()
        except BrokenProcessPool:
            sys.exit(0)
    sys.exit(1)
context.Pool(2).apply(work)
