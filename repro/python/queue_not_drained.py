# Mechanism: a worker process puts more into a multiprocessing.Queue than a pipe holds. The worker does not end before
#            the queue's feeder thread has written everything. The parent waits for the worker's end before it reads.
# To blame:  join() before the queue is drained.
# User sees: join() does not return, although the worker seems to have done its work.
# Fix:       read the queue first, then call join(). Or use the queue of a multiprocessing.Manager.
# Repaired:  the parent reads the queue first.
#
# EXPECT-BARE: hang
# EXPECT: pipe-deadlock proven hang victims=0
import multiprocessing
import signal
import sys

# SIGINT gets its default action. Python's own handler could end the wait by an exception. Then the hang is not proven.
signal.signal(signal.SIGINT, signal.SIG_DFL)
context = multiprocessing.get_context("fork")
results = context.Queue()


def work():
    results.put(b"x" * 1_000_000)


worker = context.Process(target=work)
worker.start()
if sys.argv[1] == "repaired":
    results.get()
worker.join()
