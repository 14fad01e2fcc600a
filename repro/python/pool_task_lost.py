# Mechanism: a worker of a multiprocessing.Pool ends in the middle of its task. For example, the kernel kills the worker
#            because memory is short. The pool starts another worker, but does not run the task again.
# To blame:  the end of the worker. The pool does not notice that the worker had a task.
# User sees: apply() does not return, and all workers are idle.
# Fix:       use concurrent.futures.ProcessPoolExecutor, which raises BrokenProcessPool.
# Repaired:  the program uses ProcessPoolExecutor.
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
