# Mechanism: a coroutine hands a blocking call to a ThreadPoolExecutor that was made, and used, before the fork. The executor
#            believes in its worker and starts no other; the event loop sleeps in epoll_wait(), for a result that never comes.
# To blame:  os.fork() in a process with threads. The executor belongs to one process.
# User sees: the child stops, 0 % CPU; epoll_wait in strace.
# Fix:       an executor that the child makes itself; spawn or forkserver.
# Repaired:  the child makes its own.
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

# As a script in the background of a shell has it: else asyncio.run() has a handler that could end the wait.
signal.signal(signal.SIGINT, signal.SIG_DFL)
executor = ThreadPoolExecutor(max_workers=1)
executor.submit(int).result()
# The worker says that it is idle only after the result is out.
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
