"""In the parent, threads of PyTorch run the function that is passed to torch.jit.fork(). The child does not have these threads.
Repaired: only the child calls torch.jit.fork()."""
import os
import sys

import torch


@torch.jit.script
def add(numbers: torch.Tensor):
    return numbers + 1


@torch.jit.script
def add_elsewhere(numbers: torch.Tensor):
    return torch.jit.wait(torch.jit.fork(add, numbers))


torch.set_num_interop_threads(2)
if "repaired" not in sys.argv:
    add_elsewhere(torch.ones(1))
child = os.fork()
if child == 0:
    add_elsewhere(torch.ones(1))
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1] != 0)
