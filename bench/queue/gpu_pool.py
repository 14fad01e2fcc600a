#!/usr/bin/python3
"""Measures how long it takes to hand a buffer of a CUDA device to another process: through a pool of ipc/cuda, and
through torch.multiprocessing. gpu_pool.py needs a GPU. torch.multiprocessing is measured only if PyTorch with CUDA is
installed.

  gpu_pool.py --program build/release/bin/bench_gpu_pool [--update docs/cuda-ipc.md]
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tables

BYTES, ROUNDS, MESSAGES, TORCH_MESSAGES, WARM_UP = 64 << 20, 3, 20000, 300, 30


def torch_reader(there, back, count):
    import torch
    torch.zeros(1, device="cuda")
    back.put(0)
    for _ in range(count):
        tensor = there.get()
        del tensor
        back.put(1)


def torch_round(buffers):
    """Returns the microseconds of one message over torch.multiprocessing. `buffers` tensors are used in turn."""
    import torch
    import torch.multiprocessing as mp
    spawn = mp.get_context("spawn")
    there, back = spawn.Queue(), spawn.Queue()
    tensors = [torch.zeros(BYTES, dtype=torch.uint8, device="cuda") for _ in range(buffers)]
    reader = spawn.Process(target=torch_reader, args=(there, back, TORCH_MESSAGES + WARM_UP))
    reader.start()
    back.get(timeout=60)
    begin, under_way = time.perf_counter(), 0
    for number in range(TORCH_MESSAGES + WARM_UP):
        if number == WARM_UP:
            begin = time.perf_counter()
        if under_way == buffers:
            back.get(timeout=60)
            under_way -= 1
        there.put(tensors[number % buffers])
        under_way += 1
    for _ in range(under_way):
        back.get(timeout=60)
    took = time.perf_counter() - begin
    reader.join()
    return took / TORCH_MESSAGES * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--update", type=Path)
    options = parser.parse_args()
    figures = {"vmm_fd": [], "legacy": [], "torch.multiprocessing": []}
    try:
        import torch
        has_torch = torch.cuda.is_available()
    except ImportError:
        has_torch = False
    for _ in range(ROUNDS):
        for kind in ("vmm_fd", "legacy"):
            ran = subprocess.run([options.program, kind, str(BYTES), str(MESSAGES)], stdout=subprocess.PIPE, timeout=120, check=False)
            if ran.returncode != 0:
                sys.exit(ran.returncode)
            got = json.loads(ran.stdout)
            figures[kind].append((got["handoff_us"], got["round_trip_us"]))
        if has_torch:
            figures["torch.multiprocessing"].append((torch_round(4), torch_round(1)))
    rows = []
    for name, rounds in figures.items():
        if rounds:
            rows.append([f"`{name}`", *(f"{statistics.median(one):.1f} us ({min(one):.1f} to {max(one):.1f})" for one in zip(*rounds))])
    text = tables.grid(["64 MiB of device memory", "time of a message, 4 buffers go round", "1 buffer goes round"], rows)
    print(text)
    if options.update:
        tables.update(options.update, {"gpu-pool": text})


if __name__ == "__main__":
    main()
