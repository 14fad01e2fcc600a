#!/usr/bin/python3
"""Measures a training loop over several queues in one run. Loader processes fill numpy arrays, and the trainer sums them.

Other work on the machine disturbs the times, so only ratios within one run mean anything. The queues take turns in each round,
and the figures are medians of the rounds. A second part runs each queue once more. In this part, the trainer kills a loader
every --kill-every seconds and starts another. If no batch comes out of a queue for --stall seconds, the table says that the
queue hung, and after how many seconds. numpy is necessary: without it, the exit status is 77. Without torch, the queue of torch
is left out, and a line says so.

  queue_python.py --library build/release/lib/libforksight-ipc.so [--seconds N] [--rounds N] [--bytes N] [--loaders N]
"""
import argparse
import importlib.util
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SLOTS = 4
START = 60  # seconds that the first batch may take in addition to --stall
# With "forksight", a loader writes the batch directly into the memory of the queue. With "forksight put", it creates the batch
# elsewhere, and put() copies it.
TRANSPORTS = ("forksight", "forksight put", "multiprocessing", "torch.multiprocessing")


def make_queue(name, size):
    if name.startswith("forksight"):
        sys.path.insert(0, str(ROOT / "python"))
        from forksight.queue import Queue
        return Queue(SLOTS, item_bytes=size)
    if name == "multiprocessing":
        import multiprocessing
        return multiprocessing.Queue(SLOTS)
    import torch
    import torch.multiprocessing
    torch.set_num_threads(1)
    return torch.multiprocessing.Queue(SLOTS)


def load(name, queue, size):
    """The loader's function. It creates and sends batches until the process is killed."""
    import numpy
    number = 0
    while True:
        number += 1
        if name == "forksight":
            with queue.loan() as loan:
                loan.array(size // 4, "f4")[:] = number
                loan.send()
            continue
        batch = numpy.full(size // 4, number, "f4")
        if name == "torch.multiprocessing":
            import torch
            batch = torch.from_numpy(batch)
        queue.put(batch)


def train(name, size, loaders, kill_every):
    """The trainer's function. It writes one byte to standard output for each batch that it receives."""
    import multiprocessing
    if name == "torch.multiprocessing":
        from torch import multiprocessing
    context = multiprocessing.get_context("fork")
    queue = make_queue(name, size)

    def start():
        process = context.Process(target=load, args=(name, queue, size), daemon=True)
        process.start()
        return process

    processes, next_kill = [start() for _ in range(loaders)], time.monotonic() + kill_every
    while True:
        batch = queue.get()
        float(batch.sum())
        del batch
        os.write(1, b".")
        if kill_every and time.monotonic() > next_kill:
            victim = processes.pop(0)
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            processes.append(start())
            next_kill = time.monotonic() + kill_every


def measure(arguments, name, kill_every):
    """Runs one trainer. Returns two values: the batches per second, counted after the first batch, and a text that says how
    the trainer failed, or None."""
    command = [sys.executable, "-B", __file__, "--inner", name, "--bytes", str(arguments.bytes), "--loaders", str(arguments.loaders), "--kill-every",
               str(kill_every)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    trainer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment, start_new_session=True,
                               stderr=None if name.startswith("forksight") or not kill_every else subprocess.DEVNULL)
    try:
        first = last = None
        count, end = 0, None
        while True:
            # The first batch takes longer, because the processes must start, and load numpy and torch.
            ready, _, _ = select.select([trainer.stdout], [], [], arguments.stall + (START if first is None else 0))
            now = time.monotonic()
            told = os.read(trainer.stdout.fileno(), 4096) if ready else b""
            if not told:
                return 0.0, f"{'the trainer failed' if ready else 'hung'} after {last - first if count else 0.0:.1f} s"
            if first is None:
                first, end = now, now + arguments.seconds
            else:
                count += len(told)
            last = now
            if now >= end:
                return count / (now - first), None
    finally:
        os.killpg(trainer.pid, signal.SIGKILL)
        trainer.wait()
        trainer.stdout.close()


def find_transports(wanted):
    missing = {name for name in ("numpy", "torch") if importlib.util.find_spec(name) is None}
    if "numpy" in missing:
        print("skipped: numpy is not installed")
        raise SystemExit(77)
    kept = [name for name in wanted if not ("torch" in missing and name.startswith("torch"))]
    if len(kept) < len(wanted):
        print("left out: torch.multiprocessing, because torch is not installed")
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="the path of libforksight-ipc.so; without it, forksight.queue looks for the library")
    parser.add_argument("--seconds", type=float, default=5, help="how many seconds each measure takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=64 << 20, help="how many bytes a batch has")
    parser.add_argument("--loaders", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=1, help="seconds between kills in the second part; 0 leaves that part out")
    parser.add_argument("--stall", type=float, default=5, help="after how many seconds without a batch a queue counts as hung")
    parser.add_argument("--transports", default=",".join(TRANSPORTS))
    parser.add_argument("--inner", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        train(arguments.inner, arguments.bytes, arguments.loaders, arguments.kill_every)
    if arguments.library:
        os.environ["FORKSIGHT_QUEUE_LIBRARY"] = str(Path(arguments.library).resolve())
    names = find_transports(arguments.transports.split(","))
    undisturbed = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            rate, failure = measure(arguments, name, 0)
            if failure:
                raise SystemExit(f"queue_python.py: error: {name} without a kill: {failure}")
            undisturbed[name].append(rate)
    base = names[-1] if "multiprocessing" not in names else "multiprocessing"
    ratios = {name: statistics.median(mine / max(theirs, 1e-9) for mine, theirs in zip(undisturbed[name], undisturbed[base])) for name in names}
    print(f"batches of {arguments.bytes >> 10} KiB, {arguments.loaders} loaders, {arguments.rounds} rounds of {arguments.seconds:g} s\n")
    print(f"| queue | batches/s | times {base} | a loader killed every {arguments.kill_every:g} s |\n|---|---|---|---|")
    has_failed = False
    for name in names:
        told = ""
        if arguments.kill_every:
            rate, failure = measure(arguments, name, arguments.kill_every)
            told = failure or f"{rate:.1f} batches/s"
            has_failed = has_failed or (failure is not None and name.startswith("forksight"))
        print(f"| {name} | {statistics.median(undisturbed[name]):.1f} | {ratios[name]:.2f} | {told} |", flush=True)
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
