"""multiprocessing_scenes.py NAME: processes that wait for a lock or a semaphore of Python's multiprocessing.

Each function without parameters is one scene. A scene prints `x` when its processes are started.
"""
import multiprocessing
import os
import signal
import sys
import threading

context = multiprocessing.get_context("fork")


def run(target, *args):
    """Starts a child and waits for its end."""
    child = context.Process(target=target, args=args)
    child.start()
    sys.stdout.write("x")
    sys.stdout.flush()
    child.join()


def acquire(*locks):
    for lock in locks:
        lock.acquire()


def parent_holds():
    lock = context.Lock()
    lock.acquire()
    run(acquire, lock)


def child_acquires_twice():
    lock = context.Lock()
    run(acquire, lock, lock)


def acquire_and_meet(first, second, ready, go):
    first.acquire()
    ready.release()
    go.acquire()
    second.acquire()


def two_orders():
    one, two = context.Lock(), context.Lock()
    ready, go = context.Semaphore(0), context.Semaphore(0)
    other = context.Process(target=acquire_and_meet, args=(one, two, ready, go))
    other.start()
    run(acquire_and_meet, two, one, go, ready)


def die_with(lock):
    lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)


def holder_was_killed():
    lock = context.Lock()
    killed = context.Process(target=die_with, args=(lock,))
    killed.start()
    killed.join()
    run(acquire, lock)


def event_is_never_set():
    run(context.Event().wait)


def party_is_missing():
    barrier = context.Barrier(3)
    other = context.Process(target=barrier.wait)
    other.start()
    run(barrier.wait)


def put_all(queue):
    for item in range(3):
        queue.put(item)


def nobody_gets():
    run(put_all, context.Queue(1))


def get_one(queue):
    queue.get()


def nobody_puts():
    queue = context.Queue()
    other = context.Process(target=get_one, args=(queue,))
    other.start()
    run(get_one, queue)


def holder_sleeps():
    lock = context.Lock()
    lock.acquire()
    threading.Timer(3600, lock.release).start()
    run(acquire, lock)


def acquire_again(lock, event):
    lock.acquire()
    lock.acquire()
    event.wait()


def recursive_lock_is_fine():
    """The child acquires an RLock twice. Then it waits for an event that a thread of its parent sets later."""
    event = context.Event()
    threading.Timer(3600, event.set).start()
    run(acquire_again, context.RLock(), event)


def acquire_in_a_thread_first(lock):
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    lock.acquire()


def holding_thread_has_ended():
    run(acquire_in_a_thread_first, context.Lock())


def copy_of_held_lock():
    """os.fork() copies the count of a held lock, so both processes seem to hold the lock."""
    lock = context.Lock()
    lock.acquire()
    child = os.fork()
    if child == 0:
        lock.acquire()
    sys.stdout.write("x")
    sys.stdout.flush()
    os.waitpid(child, 0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
