"""Plays many seeds. Other processes generate the scenarios, because the search for a scenario keeps a processor busy. A play sleeps
most of the time, so many plays run at once. A campaign with a file of results may be stopped at any moment, and continued later."""
import ctypes
import hashlib
import json
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from generate import generate
from verdict import Judged

MAKERS = 2
PR_SET_PDEATHSIG = 1
SAY_EVERY_S = 30
ORACLE = Path(__file__).resolve().parent.parent / "oracle"


def digest(*files):
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Results:
    """A file with a line for each seed. The first line says which command and which modes gave the results."""

    def __init__(self, path, forksight, modes):
        self.path, self.lock, self.entries = path, threading.Lock(), {}
        head = {"forksight": digest(forksight), "oracle": digest(*sorted(ORACLE.glob("*.py"))), "modes": modes}
        if path and path.exists():
            lines = path.read_text().splitlines()
            if json.loads(lines[0]) != head:
                raise SystemExit(f"{path}: these results come from another forksight, another oracle or other modes. Choose a new file")
            self.entries = {entry["seed"]: entry for entry in map(read_entry, lines[1:]) if entry}
            path.write_text("\n".join([json.dumps(head), *map(json.dumps, self.entries.values())]) + "\n")  # drops a last line that was cut off
        elif path:
            path.write_text(json.dumps(head) + "\n")

    def add(self, seed, truth, results):
        entry = {"seed": seed, "healthy": truth.is_healthy(), "results": {
            mode: {"verdict": verdict, "judged": [asdict(one) for one in judged], "note": note} for mode, (verdict, judged, note) in results.items()}}
        with self.lock:
            self.entries[seed] = entry
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")


def read_entry(line):
    try:
        return json.loads(line)
    except ValueError:
        return None  # the line was cut off when the campaign was stopped


def verdicts_of(entry):
    """Returns {mode: (verdict, judged findings, note)}, from an entry of the results."""
    return {mode: (one["verdict"], [Judged(**judged | {"sentences": tuple(map(tuple, judged["sentences"]))}) for judged in one["judged"]], one["note"])
            for mode, one in entry["results"].items()}


def leave_signals_to_the_campaign():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # if the campaign is killed, the kernel also kills the processes that generate scenarios
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def stop_on_signal():
    """Makes SIGTERM end the campaign in the same way as Ctrl-C."""
    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def stream(seeds, jobs, play, make=generate, is_enough=lambda: False):
    """Calls play(seed, *make(seed)) for each seed, in order, at most `jobs` calls at a time. Stops if is_enough() returns True.
    If a signal interrupts this function, it starts no further call, and waits for the calls that have started."""
    room = threading.BoundedSemaphore(jobs)

    def one(seed, made):
        try:
            play(seed, *made)
        finally:
            room.release()

    futures, ahead = [], []
    with ProcessPoolExecutor(MAKERS, initializer=leave_signals_to_the_campaign) as makers, ThreadPoolExecutor(jobs) as players:
        try:
            for seed in [*seeds, *[None] * (2 * jobs)]:
                ahead.append((seed, makers.submit(make, seed) if seed is not None else None))
                if len(ahead) <= 2 * jobs or ahead[0][0] is None:
                    continue
                first, made = ahead.pop(0)
                room.acquire()
                futures.append(players.submit(one, first, made.result()))
                if is_enough():
                    break
        except KeyboardInterrupt:
            print("stopped; the plays that have started are finished first", flush=True)
        makers.shutdown(cancel_futures=True)
    for future in futures:
        future.result()


class Progress:
    def __init__(self, total, done):
        self.total, self.done, self.first = total, done, done
        self.begin = self.said = time.monotonic()
        self.lock = threading.Lock()

    def count(self):
        with self.lock:
            self.done += 1
            now = time.monotonic()
            if now - self.said < SAY_EVERY_S and self.done < self.total:
                return
            self.said = now
            rate = (self.done - self.first) / (now - self.begin) * 60
            print(f"{self.done:,} of {self.total:,} scenarios, {rate:.0f} a minute, {(self.total - self.done) / rate:.0f} minutes left", flush=True)
