# Mechanism: two tasks of one event loop await each other. The loop sleeps in epoll_wait(), and watches only the socket
#            pair by which the loop wakes itself.
# To blame:  the second of the two awaits. It closes the ring.
# User sees: the script stops, at 0 % CPU. strace shows epoll_wait.
# Fix:       await in one direction only: a task hands its result on, and does not await the task that awaits it. Or
#            await with a time limit (asyncio.wait_for).
# Repaired:  the second task awaits nothing.
#            timed:   the second task awaits with a time limit. The script then prints "second: no answer" and ends.
#
# EXPECT-BARE: hang
# EXPECT: pipe-deadlock proven hang culprit="a descriptor" victims=0
# EXPECT-WHY: pipe-deadlock proven hang culprit="a descriptor" victims=0
# EXPECT-STACK: stack turn@wait <module>@start
# EXPECT-BARE(timed): ok
# EXPECT-NONE(timed)
import asyncio
import signal
import sys

# SIGINT gets its default action. Python's own handler could end the wait.
signal.signal(signal.SIGINT, signal.SIG_DFL)
tasks = []


async def first():
    await tasks[1]


async def second():
    if sys.argv[1] == "timed":
        try:
            await asyncio.wait_for(asyncio.shield(tasks[0]), 0.5)
        except TimeoutError:
            print("second: no answer", flush=True)
    elif sys.argv[1] != "repaired":
        await tasks[0]


def turn():
    loop = asyncio.new_event_loop()
    tasks.extend([loop.create_task(first()), loop.create_task(second())])
    loop.run_until_complete(tasks[0])  # MARK: wait


turn()  # MARK: start
