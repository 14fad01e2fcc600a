# Mechanism: multiprocessing.Pool uses the start method fork. A thread of the parent holds a lock that the workers need.
# To blame:  the start method. The start method fork is the default on Linux up to Python 3.13.
# User sees: pool.map() never returns.
# Fix:       use spawn or forkserver.
# Repaired:  the pool is made before the thread takes the lock.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=load victims=1
# EXPECT-STACK: culprit load@inside
# EXPECT-STACK: stack work@touch
# EXPECT-STACK: fork <module>@pool
# EXPECT-WHY: python-lock-orphaned likely hang victims=1
# EXPECT-CORE: python-lock-orphaned likely hang
# EXPECT-BARE(spawn): ok
# EXPECT-NONE(spawn)
# EXPECT-BARE(forkserver): ok
# EXPECT-NONE(forkserver)
import multiprocessing
import sys
import threading

from baton import Baton, stop_helpers

model_lock = threading.Lock()
loader_is_inside = Baton()


def load():
    with model_lock:
        loader_is_inside.give_and_park()  # MARK: inside


def work(number):
    with model_lock:  # MARK: touch
        return number


def start_loader():
    threading.Thread(target=load, daemon=True).start()
    loader_is_inside.take()


if __name__ == "__main__":
    method = sys.argv[1] if sys.argv[1] in ("spawn", "forkserver") else "fork"
    if sys.argv[1] != "repaired":
        start_loader()
    with multiprocessing.get_context(method).Pool(1) as pool:  # MARK: pool
        if sys.argv[1] == "repaired":
            start_loader()
        done = pool.map(work, [1])
    stop_helpers()
    sys.exit(0 if done == [1] else 1)
