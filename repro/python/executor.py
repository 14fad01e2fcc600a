# Mechanism: a ThreadPoolExecutor has an idle worker at the fork. In the child submit() believes in that worker and starts
#            no other: the work is never done.
# To blame:  os.fork() in a process with threads. The executor belongs to one process.
# User sees: the child stops in Future.result().
# Fix:       an executor that the child makes itself; spawn or forkserver.
# Repaired:  the child makes its own.
#
# EXPECT-BARE: hang
# EXPECT: lost-wakeup proven/likely hang start=_worker victims=1
# EXPECT-STACK: stack <module>@touch
# EXPECT-STACK: fork <module>@fork
# EXPECT-CORE: lost-wakeup possible may-hang
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from baton import end_of

executor = ThreadPoolExecutor(max_workers=1)
executor.submit(int).result()
# The worker says that it is idle only after the result is out.
executor._idle_semaphore.acquire()
executor._idle_semaphore.release()
child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        executor = ThreadPoolExecutor(max_workers=1)
    executor.submit(int).result()  # MARK: touch
    os._exit(0)
sys.exit(end_of(child))
