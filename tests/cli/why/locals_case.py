# A forked child hangs in a function that has arguments and a local variable.
import os
import sys
import threading


def take(lock, number):
    seen = number + 1
    lock.acquire()
    return seen


def hold(lock, ready):
    lock.acquire()
    ready.set()
    os.read(os.pipe()[0], 1)


def main():
    lock = threading.Lock()
    ready = threading.Event()
    threading.Thread(target=hold, args=(lock, ready), daemon=True).start()
    ready.wait()
    child = os.fork()
    if child == 0:
        sys.exit(take(lock, 1))
    os.waitpid(child, 0)


main()
