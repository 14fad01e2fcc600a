# Mechanism: a thread holds a threading.Lock while main forks. The lock stays taken in the child.
# To blame:  os.fork() in a process with threads.
# User sees: the child stops at its first `with lock`. The parent stops in waitpid().
# Fix:       use spawn or forkserver (start_methods.py), or a handler of os.register_at_fork() that waits for the holder
#            before the fork.
# Repaired:  os.register_at_fork() takes the lock before the fork and releases it on both sides.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=load victims=1
# EXPECT-STACK: culprit load@inside
# EXPECT-STACK: stack work@touch <module>@child
# EXPECT-STACK: fork <module>@fork
#
# Variant "timed": the child acquires the lock with a deadline. It gets an error, and does not hang.
# EXPECT-BARE(timed): error
# EXPECT(timed): python-lock-orphaned proven error start=load victims=0
#
# Variant "ignored": the program ignores SIGQUIT, as do programs that a shell has started in the background. The entry
# of SIGQUIT in Python's table of handlers is then not the usual one. The handler of SIGINT is still Python's own, so
# the hang is still proven.
# EXPECT-WHY: python-lock-orphaned likely hang victims=1
# EXPECT-CORE: python-lock-orphaned likely hang
import os
import signal
import sys
import threading

from baton import Baton, end_of

VARIANT = sys.argv[1]
cache_lock = threading.Lock()
loader_is_inside = Baton()


def load():
    with cache_lock:
        if VARIANT == "repaired":
            loader_is_inside.give()
        else:
            loader_is_inside.give_and_park()  # MARK: inside


def work():
    if VARIANT == "timed":
        return 0 if cache_lock.acquire(timeout=0.3) else 3
    with cache_lock:  # MARK: touch
        return 0


if VARIANT == "repaired":
    os.register_at_fork(before=cache_lock.acquire, after_in_parent=cache_lock.release, after_in_child=cache_lock.release)
if VARIANT == "ignored":
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
threading.Thread(target=load, name="loader", daemon=True).start()
loader_is_inside.take()
child = os.fork()  # MARK: fork
if child == 0:
    os._exit(work())  # MARK: child
sys.exit(end_of(child))
