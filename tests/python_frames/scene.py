"""Starts threads. Each thread waits in a different kind of code. Prints what Python itself reports about the threads,
as one line of JSON.

Then the main thread waits in read() for standard input. Mode "gil": the main thread holds the GIL during this wait.
"fork", "c-fork": the main thread of a forked child waits instead. "busy": another thread runs during this wait.
"""
import ctypes
import json
import linecache
import os
import sys
import threading
import time
import warnings

GATES = []
ARRIVED = []


def arrive():
    ARRIVED.append(threading.get_ident())
    return True


def gate():
    lock = threading.Lock()
    lock.acquire()
    GATES.append(lock)
    return lock


def innermost(depth, *, label="x"):
    lock = gate()
    total = depth + len(label)
    lock.acquire(arrive())
    return total


def nested():
    def middle(value):
        return innermost(
            value,
            label="nested",
        )

    middle(3)


def generator():
    def numbers():
        yield 1
        gate().acquire(arrive())
        yield 2

    def all_numbers():
        yield 0
        yield from numbers()

    for number in all_numbers():
        last = number
    return last


def comprehension():
    lock = gate()
    return [each for each in [lock.acquire(arrive()) for _ in range(1)] if each]


def generator_expression():
    lock = gate()
    return sum(
        (lambda: lock.acquire(arrive()))()
        for _ in range(1)
    )


def called_by_c():
    def key(value):
        gate().acquire(arrive())
        return value

    return sorted([2, 1], key=key)


def coroutine():
    async def inner():
        gate().acquire(arrive())

    async def outer():
        await inner()

    outer().send(None)


class Manager:
    def __enter__(self):
        try:
            raise ValueError
        except ValueError:
            gate().acquire(arrive())

    def __exit__(self, *args):
        pass

    @staticmethod
    def run():
        with Manager():
            pass


def recursion(depth=2000):
    if depth:
        return recursion(depth - 1)
    return gate().acquire(arrive())


def in_pipe():
    end = os.pipe()[0]
    os.read(end, arrive())


def made(name, text, file):
    scope = {"gate": gate, "arrive": arrive}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


# FAR has large steps between line numbers, forward and back. LONG is a function of thousands of lines.
FAR = "def far(a):\n" + "\n" * 5000 + "  a = [\n" + "\n" * 300 + "    1,\n  ]; gate().acquire(" + "\n" * 90 + "arrive(\n\n))"
LONG = "def long(a):\n" + "".join(f"  a = {i} if a else (\n  {i + 1})\n" for i in range(3000)) + "  gate().acquire(arrive())"
THREADS = {
    "nested": nested,
    "generator": generator,
    "comprehension": comprehension,
    "generator_expression": generator_expression,
    "called_by_c": called_by_c,
    "coroutine": coroutine,
    "method": Manager.run,
    "recursion": recursion,
    "in_pipe": in_pipe,
    "far": lambda: made("far", FAR, "/tmp/far away.py")(1),
    "long": lambda: made("long", LONG, "<long>")(1),
    "latin": lambda: made("größe", "def größe(ä):\n  gate().acquire(arrive())", "/tmp/größe.py")(1),
    "bmp": lambda: made("f", "def f(): gate().acquire(arrive())", "/tmp/模块.py")(),
    "wide": lambda: made("f", "def f(): gate().acquire(arrive())", "/tmp/😀.py")(),
    "module": lambda: exec(compile("\n\ngate().acquire(arrive())", "module.py", "exec")),
    "event": lambda: threading.Event().wait(),
}


def run():
    def numbers(count):
        for number in range(count):
            yield [each for each in range(number)]

    while True:
        for each in numbers(5):
            sorted(each, key=lambda value: -value)


def frames_of(frame):
    frames = []
    while frame is not None:
        frames.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def is_waiting(thread):
    frame = sys._current_frames().get(thread.ident)
    if frame is None or frame.f_code is arrive.__code__:
        return False
    if thread.name != "event":
        return thread.ident in ARRIVED
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().startswith("waiter.acquire()")


def read_input():
    os.read(0, 1)


def read_input_with_gil():
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)


def tell(threads, waiter):
    """Prints the report. The report says that the main thread waits in the line that calls tell(). So the call of
    tell() and the call that waits must be in the same source line: waiter(*tell(...))."""
    frames = sys._current_frames()
    main = threading.main_thread()
    told = {"pid": os.getpid(), "threads": []}
    for thread in threads:
        told["threads"].append({"name": thread.name, "id": thread.ident, "tid": thread.native_id,
                                "frames": frames_of(frames[thread.ident])})
    code = waiter.__code__
    top = [code.co_name, code.co_filename, code.co_firstlineno + 1]
    told["threads"].append({"name": "main", "id": main.ident, "tid": main.native_id,
                            "frames": [top] + frames_of(sys._getframe(1))})
    os.write(1, json.dumps(told).encode() + b"\n")
    return ()


def main():
    mode = sys.argv[1]
    warnings.simplefilter("ignore")  # Python warns about a fork with threads
    threading.stack_size(64 << 20)
    sys.setrecursionlimit(10000)
    threads = [threading.Thread(target=target, name=name, daemon=True) for name, target in THREADS.items()]
    for thread in threads:
        thread.start()
    while not all(is_waiting(thread) for thread in threads):
        time.sleep(0)
    if mode == "busy":
        threading.Thread(target=run, name="busy", daemon=True).start()
    waiter = read_input_with_gil if mode == "gil" else read_input
    if mode in ("fork", "c-fork"):
        child = os.fork() if mode == "fork" else ctypes.PyDLL(None).fork()
        if child != 0:
            os.waitpid(child, 0)
            os._exit(0)
        if mode == "fork":
            threads = []
    waiter(*tell(threads, waiter))
    os._exit(0)


if __name__ == "__main__":
    main()
