# Mechanism: PyTorch runs its operations on libgomp's pool of the calling thread. fork() copies the record of that pool,
#            but not its threads. The child's first operation that uses two threads waits for these threads.
# To blame:  fork() after an operation of PyTorch in the same thread. With the start method fork, multiprocessing calls
#            fork(), too.
# User sees: a worker that never returns from its first operation, at 0 % CPU.
# Fix:       call torch.set_num_threads(1) in the worker, as DataLoader does. Or use spawn or forkserver.
# Repaired:  the worker calls torch.set_num_threads(1).
#
# EXPECT-BARE: hang
# EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
# EXPECT-CURED: --omp=rebuild stdout="child: sum 4000000"
# EXPECT-CURED: stdout="child: sum 4000000"
import os
import sys

import torch

from baton import end_of

torch.set_num_threads(2)


def total():
    return int(torch.ones(2000, 2000).sum())  # MARK: touch


print(f"parent: sum {total()}", flush=True)
child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        torch.set_num_threads(1)
    print(f"child: sum {total()}", flush=True)
    os._exit(0)
sys.exit(end_of(child))
