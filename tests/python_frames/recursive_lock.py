"""A thread holds a threading.RLock while the first thread forks. In the child the lock stays taken, and its recorded owner is the
lost thread."""
import os
import sys
import threading

lock = threading.RLock()
is_inside = threading.Event()


def load():
    with lock:
        is_inside.set()
        threading.Event().wait()


threading.Thread(target=load, name="loader", daemon=True).start()
is_inside.wait()
child = os.fork()
if child == 0:
    with lock:
        os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
