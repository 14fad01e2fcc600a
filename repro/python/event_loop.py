# Mechanism: main has an event loop and forks. The child closes the loop as part of its cleanup. loop.close() removes a
#            descriptor from the epoll instance, which both processes share. The descriptor is the socket that wakes the
#            loop for signals and for results of threads.
# To blame:  loop.close() in the child. It would have been harmless to close only the epoll descriptor.
# User sees: after the fork a service does not react to signals any more, or goes on sleeping although results have
#            come.
# Fix:       leave the inherited loop alone, by asyncio.set_event_loop(None) or a new loop. Or start workers by spawn.
# Repaired:  the child makes a new loop.
#
# EXPECT-BARE: error
# EXPECT: epoll-shared likely/proven may-hang culprit="the interest in a socket" victims=0
# EXPECT-STACK: culprit <module>@close
# EXPECT-STACK: stack turn@wait <module>@again
# EXPECT-STACK: fork <module>@fork
import asyncio
import os
import signal
import sys

from baton import end_of

called = []
loop = asyncio.new_event_loop()
loop.add_signal_handler(signal.SIGUSR1, called.append, 1)


def turn():
    """Handles the events that have come, without waiting."""
    loop.call_soon(loop.stop)
    loop.run_forever()  # MARK: wait


turn()
child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        asyncio.new_event_loop().run_until_complete(asyncio.sleep(0))
    else:
        loop.close()  # MARK: close
    os._exit(0)
if end_of(child) != 0:
    sys.exit(2)
os.kill(os.getpid(), signal.SIGUSR1)
for _ in range(3):
    turn()  # MARK: again
status = 0 if called else 1
loop.close()
sys.exit(status)
