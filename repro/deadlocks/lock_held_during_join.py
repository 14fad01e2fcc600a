# Mechanism: a process holds a lock of multiprocessing while it waits for the end of a child. The child needs that lock.
# To blame:  the join while the lock is held.
# User sees: join() never returns, and the child sleeps in acquire().
# Fix:       release the lock before join().
# Repaired:  the process releases the lock first.
#
# EXPECT-BARE: hang
# EXPECT: join-cycle likely may-hang victims=0
import multiprocessing
import sys

context = multiprocessing.get_context("fork")
lock = context.Lock()


def use():
    with lock:
        pass


lock.acquire()
child = context.Process(target=use)
child.start()
if "repaired" in sys.argv:
    lock.release()
child.join()
