#!/usr/bin/python3
"""Measures the queues of CPython's multiprocessing and of torch.multiprocessing as bench_queue measures other
transports.

peers.py accepts the options of bench_queue, ignores options that do not apply to these queues, and prints the same line
of JSON. A message is a numpy array for the queues of CPython, and a tensor for the queues of torch. With --kill, a
message is a bytes object. A new array or tensor is created for each message, as in the programs of users.
"""
import argparse
import json
import multiprocessing
import os
import random
import signal
import statistics
import time

HANGS_S = 2
# If one batch takes this many times as long as the whole measure should take, it is the only batch of the measure.
MUCH_TOO_LONG = 10
NAMES = ["CPython SimpleQueue", "CPython Queue", "torch SimpleQueue", "torch Queue"]


def module_of(name):
    if name.startswith("torch"):
        import torch.multiprocessing
        return torch.multiprocessing
    return multiprocessing


class Payload:
    """Creates and checks messages. With --touch 1 it writes and checks each word, otherwise only the first word."""

    def __init__(self, options):
        self.words, self.touch = options.bytes // 8, options.touch
        if options.transport.startswith("torch"):
            import torch
            torch.set_num_threads(1)
            self.full = lambda value: torch.full((self.words,), value, dtype=torch.int64)
            self.empty = lambda: torch.empty((self.words,), dtype=torch.int64)
        else:
            import numpy
            self.full = lambda value: numpy.full((self.words,), value, dtype=numpy.int64)
            self.empty = lambda: numpy.empty((self.words,), dtype=numpy.int64)

    def make(self, value):
        if self.touch:
            return self.full(value)
        made = self.empty()
        made[0] = value
        return made

    def check(self, got, value):
        if (int(got.sum()) != value * self.words) if self.touch else (int(got[0]) != value):
            raise SystemExit("a received message has wrong content")


def serve(there, back, talk, options):
    if options.cpu_second is not None:
        os.sched_setaffinity(0, {options.cpu_second})
    payload, value = Payload(options), 0
    while count := talk.recv():
        for _ in range(count):
            got = there.get()
            value += 1
            payload.check(got, value)
            if options.measure == "round_trip":
                back.put(got)
            del got
        talk.send(value)


class First:
    def __init__(self, options):
        queues = module_of(options.transport)
        context = queues.get_context("fork")
        make = context.SimpleQueue if "Simple" in options.transport else lambda: context.Queue(options.depth)
        self.options, self.there, self.back, self.value = options, make(), make(), 0
        self.talk, other = context.Pipe()
        self.second = context.Process(target=serve, args=(self.there, self.back, other, options), daemon=True)
        self.second.start()
        if options.cpu_first is not None:
            os.sched_setaffinity(0, {options.cpu_first})
        self.payload = Payload(options)

    def batch(self, count):
        start = time.perf_counter()
        self.talk.send(count)
        for _ in range(count):
            self.value += 1
            self.there.put(self.payload.make(self.value))
            if self.options.measure == "round_trip":
                self.payload.check(self.back.get(), self.value)
        if self.talk.recv() != self.value:
            raise SystemExit("messages are missing")
        return time.perf_counter() - start

    def measure(self):
        count = 4
        self.batch(count)
        while (took := self.batch(count)) < self.options.seconds / 20:
            count *= 2
        if took > MUCH_TOO_LONG * self.options.seconds:
            value = took / count
        else:
            count = max(2, int(count * self.options.seconds / 5 / took))
            value = statistics.median(self.batch(count) / count for _ in range(5))
        self.talk.send(0)
        self.second.join()
        return value



def take_part(queue, is_producer, moved, index):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        if is_producer:
            queue.put(b"x" * 64)
        elif queue.get() != b"x" * 64:
            raise SystemExit("a received message has wrong content")
        moved[index] += 1


def becomes_true(seconds, condition):
    """Waits until the condition is true. Returns False if it does not become true within this number of seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.0002)
    return condition()


def kill_one(options):
    """Does what crowd.cpp does: kills one process, and checks whether all others continue. Returns the figures to print."""
    context = module_of(options.transport).get_context("fork")
    queue = context.SimpleQueue() if "Simple" in options.transport else context.Queue(options.depth)
    count = options.producers + options.consumers
    moved = context.RawArray("Q", count)
    all_of_them = [context.Process(target=take_part, args=(queue, i < options.producers, moved, i), daemon=True)
                   for i in range(count)]
    for one in all_of_them:
        one.start()
    try:
        if not becomes_true(20, lambda: all(n > 2 for n in moved)):
            raise SystemExit("not all processes have moved messages in time")
        victim = 0 if options.kill == "producer" else options.producers
        time.sleep(random.Random(options.seed).uniform(0, 0.02))
        os.kill(all_of_them[victim].pid, signal.SIGKILL)
        all_of_them[victim].join()
        before, start = list(moved), time.monotonic()
        is_well = becomes_true(HANGS_S, lambda: all(moved[i] > before[i] + 1 for i in range(count) if i != victim))
        return {"hung": not is_well, "ms": round((time.monotonic() - start) * 1000, 3)}
    finally:
        for one in all_of_them:
            one.kill()
            one.join()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", choices=NAMES, required=True)
    parser.add_argument("--measure", choices=["round_trip", "stream", "crowd"], default="round_trip")
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--touch", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--producers", type=int, default=2)
    parser.add_argument("--consumers", type=int, default=2)
    parser.add_argument("--kill", choices=["producer", "consumer"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu-first", type=int)
    parser.add_argument("--cpu-second", type=int)
    return parser.parse_known_args()[0]


if __name__ == "__main__":
    wanted = parse()
    print(json.dumps(kill_one(wanted) if wanted.kill else {"value": First(wanted).measure()}))
