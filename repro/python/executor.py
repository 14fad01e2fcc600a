# Mechanism: a ThreadPoolExecutor has an idle worker at the fork. In the child submit() assumes that this worker runs,
#            and starts no other. So the work is never done.
# To blame:  os.fork() in a process with threads. The executor belongs to one process.
# User sees: the child stops in Future.result().
# Fix:       let the child make an executor of its own. Or use spawn or forkserver.
# Repaired:  the child makes an executor of its own.
#
# EXPECT-BARE: hang
# EXPECT: lost-wakeup likely/possible hang start=_worker victims=1
# EXPECT-STACK: stack <module>@touch
# EXPECT-STACK: fork <module>@fork
# EXPECT-CORE: none
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from baton import end_of

executor = ThreadPoolExecutor(max_workers=1)
executor.submit(int).result()
# The worker reports that it is idle only after it has set the result.
executor._idle_semaphore.acquire()
executor._idle_semaphore.release()
child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        executor = ThreadPoolExecutor(max_workers=1)
    executor.submit(int).result()  # MARK: touch
    os._exit(0)
sys.exit(end_of(child))
