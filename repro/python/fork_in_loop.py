# Mechanism: a coroutine forks while a thread of asyncio.to_thread() holds a lock. The child needs the lock, but does
#            not have the thread.
# To blame:  the fork in a process whose event loop has threads.
# User sees: the child stops in acquire(). The coroutine that awaits the child's end never goes on.
# Fix:       use asyncio.create_subprocess_exec(). Then the child is a new program, which has no lock of its parent.
# Repaired:  create_subprocess_exec() makes the child.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=load
# EXPECT-STACK: culprit load@inside
# EXPECT-STACK: stack work@touch
# EXPECT-STACK: fork main@fork
# EXPECT-WHY: python-lock-orphaned proven/likely hang
# EXPECT-CORE: python-lock-orphaned likely hang
import asyncio
import os
import signal
import sys
import threading

from baton import Baton

# SIGINT gets its default action. Otherwise asyncio.run() would install a handler, which could end the wait.
signal.signal(signal.SIGINT, signal.SIG_DFL)
lock = threading.Lock()
loader_is_inside = Baton()
may_end = Baton()


def load():
    with lock:
        loader_is_inside.give()
        may_end.take()  # MARK: inside


def work():
    with lock:  # MARK: touch
        return 7


async def main():
    loading = asyncio.create_task(asyncio.to_thread(load))
    await asyncio.sleep(0)
    await asyncio.to_thread(loader_is_inside.take)
    if sys.argv[1] == "repaired":
        child = await asyncio.create_subprocess_exec(sys.executable, __file__, "worker")
        status = await child.wait()
    else:
        child = os.fork()  # MARK: fork
        if child == 0:
            os._exit(work())
        status = os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, child, 0))[1])
    may_end.give()
    await loading
    return 0 if status == 7 else 1


sys.exit(work() if sys.argv[1] == "worker" else asyncio.run(main()))
