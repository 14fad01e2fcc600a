# Mechanism: a coroutine hands a blocking call to a ThreadPoolExecutor that was made and used before the fork. In the
#            child the executor assumes that its worker runs, and starts no other. The event loop sleeps in
#            epoll_wait(), for a result that never comes.
# To blame:  os.fork() in a process with threads. The executor belongs to one process.
# User sees: the child stops, at 0 % CPU. strace shows epoll_wait.
# Fix:       let the child make an executor of its own. Or use spawn or forkserver.
# Repaired:  the child makes an executor of its own.
#
# EXPECT-BARE: hang
# EXPECT: pipe-deadlock proven/possible hang culprit="a descriptor" victims=1
# EXPECT-STACK: stack <module>@touch
import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from baton import end_of

# SIGINT gets its default action. Python's own handler could end the wait.
signal.signal(signal.SIGINT, signal.SIG_DFL)
executor = ThreadPoolExecutor(max_workers=1)
executor.submit(int).result()
# The worker reports that it is idle only after it has set the result.
executor._idle_semaphore.acquire()
executor._idle_semaphore.release()


async def compute():
    return await asyncio.get_running_loop().run_in_executor(executor, int)


child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        executor = ThreadPoolExecutor(max_workers=1)
    asyncio.new_event_loop().run_until_complete(compute())  # MARK: touch
    os._exit(0)
sys.exit(end_of(child))
