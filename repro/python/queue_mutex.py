# Mechanism: a thread is inside of queue.Queue.put(), and holds the queue's mutex, while main forks.
# To blame:  os.fork() in a process with threads. A queue.Queue is for one process only.
# User sees: the child stops in put().
# Fix:       do not fork, or let the child make a queue of its own.
# Repaired:  the child makes a queue of its own.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=produce victims=1
# EXPECT-STACK: culprit _put@inside produce@put
# EXPECT-STACK: stack <module>@touch
# EXPECT-STACK: fork <module>@fork
# EXPECT-WHY: python-lock-orphaned likely hang victims=1
# EXPECT-CORE: python-lock-orphaned likely hang
import os
import queue
import sys
import threading

from baton import Baton, end_of

producer_is_inside = Baton()


class SlowQueue(queue.Queue):
    """Stops put() while put() holds the mutex. In a plain queue.Queue a fork finds a thread at this place only by
    chance."""

    def _put(self, item):
        producer_is_inside.give_and_park()  # MARK: inside


def produce():
    jobs.put("one")  # MARK: put


jobs = SlowQueue()
threading.Thread(target=produce, daemon=True).start()
producer_is_inside.take()
child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        jobs = queue.Queue()
    jobs.put("two")  # MARK: touch
    os._exit(0)
sys.exit(end_of(child))
