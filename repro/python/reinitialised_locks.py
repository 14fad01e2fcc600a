# Mechanism: none. CPython re-initialises these locks in the child: the lock of a logging handler that another thread
#            uses, and an RLock that the forking thread holds across its fork.
# To blame:  nobody.
# User sees: nothing.
# Fix:       none is needed.
#
# EXPECT-BARE: ok
# EXPECT-NONE
import logging
import os
import threading

from baton import Baton, end_of

own = threading.RLock()
logger_is_inside = Baton()


class SlowOnce(logging.StreamHandler):
    """Stops the first call of emit(), while the handler's lock is held."""

    first = True

    def emit(self, record):
        if SlowOnce.first:
            SlowOnce.first = False
            logger_is_inside.give_and_park()
        super().emit(record)


logging.basicConfig(handlers=[SlowOnce()])
threading.Thread(target=logging.warning, args=("from the thread",), daemon=True).start()
logger_is_inside.take()
with own:
    child = os.fork()
    if child == 0:
        with own:
            logging.warning("from the child")
if child == 0:
    with own:
        os._exit(0)
os._exit(end_of(child))  # sys.exit() would close the logging handler, and wait for its lock, which the thread holds
