# Mechanism: a worker puts more into a multiprocessing.Queue than a pipe holds, and its process does not end before the
#            queue's feeder thread has written all of it. The parent waits for the end of the worker before it reads.
# To blame:  join() before the queue is drained.
# User sees: join() does not return; the worker seems to have done its work.
# Fix:       read the queue first, then join(); or a Manager's queue.
# Repaired:  it is read first.
#
# EXPECT-BARE: hang
# EXPECT: pipe-deadlock proven hang victims=0
import multiprocessing
import signal
import sys

# As a script in the background of a shell has it: else Ctrl-C could end the wait.
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
