"""A job that hangs: a thread holds a lock while multiprocessing forks, and the child waits for the lock."""
import multiprocessing
import threading

lock = threading.Lock()
is_held, may_end = threading.Event(), threading.Event()


def hold():
    with lock:
        is_held.set()
        may_end.wait()


def take():
    with lock:
        pass


if __name__ == "__main__":
    threading.Thread(target=hold, daemon=True).start()
    is_held.wait()
    worker = multiprocessing.get_context("fork").Process(target=take)
    worker.start()
    worker.join()
