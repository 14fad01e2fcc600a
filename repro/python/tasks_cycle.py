# Mechanism: two tasks of one event loop await each other. The loop sleeps in epoll_wait(), and watches nothing but the
#            socket pair by which it wakes itself.
# To blame:  whichever task awaits the other one second.
# User sees: the script stops, 0 % CPU; epoll_wait in strace.
# Fix:       one direction: a task hands its result on instead of awaiting who awaits it; or a time limit (asyncio.wait_for).
# Repaired:  the second task awaits nobody. Timed: it awaits with a time limit, and the script ends with an error of its own.
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

# As a script in the background of a shell has it: else asyncio.run() has a handler that could end the wait.
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
