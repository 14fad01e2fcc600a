# Mechanism: a process takes a semaphore of multiprocessing and ends without posting it. If a worker is killed while it
#            holds the lock of a queue, the effect is the same.
# To blame:  the end of that process. A semaphore does not record which process took it.
# User sees: all other processes wait for the queue for ever.
# Fix:       let workers end by themselves, and do not kill them. ProcessPoolExecutor notices a worker that was killed.
# Repaired:  the process releases the lock before it ends.
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
