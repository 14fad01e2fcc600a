# Mechanism: a process takes a semaphore of multiprocessing and ends without posting it, as a worker does that is killed
#            while it has a queue's lock.
# To blame:  the end of that process. A semaphore does not know who took it.
# User sees: everybody else waits for the queue, for ever.
# Fix:       let workers end by themselves; ProcessPoolExecutor notices those that do not.
# Repaired:  the lock is given back.
#
# EXPECT-BARE: hang
# EXPECT: queue-lock-abandoned likely hang victims=0
import multiprocessing
import os
import sys

context = multiprocessing.get_context("fork")
lock = context.Lock()


def take():
    lock.acquire()
    if "repaired" in sys.argv:
        lock.release()
    os._exit(0)


worker = context.Process(target=take)
worker.start()
worker.join()
lock.acquire()
lock.release()
