"""Plots how the time of a message depends on three numbers: participants, slots, and processes that send and receive."""
import statistics

import tables

PLACES = [2, 16, 64, 250]
PROCESSES = [2, 4, 8, 16]
SLOTS = [8, 64, 512, 4096, 65536]
_ONE = ["--cpu-first", "0", "--cpu-second", "0"]


def _median(bench, name, arguments):
    got = [bench.run(name, arguments) for _ in range(min(5, bench.options.rounds))]
    values = [one["value"] for one in got if one]
    return statistics.median(values) if values else None


def _plot(title, rows):
    rows = [(label, value * 1e6, f"{tables.three_digits(value * 1e6)} us") for label, value in rows if value]
    return f"{title}:\n\n{tables.bars(rows)}\n" if rows else ""


def measure(bench):
    def crowd(name, count):
        arguments = ["--measure", "crowd", "--producers", str(count // 2), "--consumers", str(count // 2), "--depth", "64",
                     "--spin-us", "0"]
        return _median(bench, name, arguments)

    def pair(*arguments):
        return _median(bench, "forksight", [*_ONE, *arguments])

    text = _plot("A round trip on one CPU, by how many participants are attached (only two of them send and receive)",
                 [(str(count), pair("--idle", str(count - 2))) for count in PLACES])
    text += _plot("A round trip on one CPU, by how many slots the queue has (and as many buffers)",
                  [(str(count), pair("--slots", str(count))) for count in SLOTS])
    text += _plot("A message of 64 B on two CPUs, by how many processes take part (half of them send, the others receive)",
                  [(str(count), crowd("forksight", count)) for count in PROCESSES])
    if "Boost message_queue" in bench.kinds:
        text += _plot("The same with Boost's message_queue",
                      [(str(count), crowd("Boost message_queue", count)) for count in PROCESSES])
    return text
