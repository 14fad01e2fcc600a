# Mechanism: a ProcessPoolExecutor uses the start method fork. A thread of the parent holds a lock that the workers
#            need.
# To blame:  the start method. The start method fork is the default on Linux up to Python 3.13.
# User sees: Future.result() never returns.
# Fix:       use ProcessPoolExecutor(mp_context=multiprocessing.get_context("forkserver")), or the same with "spawn".
# Repaired:  the start method is forkserver.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=load victims=1
# EXPECT-STACK: culprit load@inside
# EXPECT-STACK: stack work@touch
# EXPECT-WHY: python-lock-orphaned likely hang victims=1
# EXPECT-CORE: python-lock-orphaned likely hang
import multiprocessing
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

from baton import Baton, stop_helpers

model_lock = threading.Lock()
loader_is_inside = Baton()


def load():
    with model_lock:
        loader_is_inside.give_and_park()  # MARK: inside


def work(number):
    with model_lock:  # MARK: touch
        return number


if __name__ == "__main__":
    threading.Thread(target=load, daemon=True).start()
    loader_is_inside.take()
    method = "forkserver" if sys.argv[1] == "repaired" else "fork"
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as executor:
        done = executor.submit(work, 7).result()
    stop_helpers()
    sys.exit(0 if done == 7 else 1)
