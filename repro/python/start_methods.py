# Mechanism: a thread holds a lock while main starts a worker. Without a variant multiprocessing forks the worker, which
#            inherits the lock in its taken state. In the variants the worker does not inherit the taken lock. The
#            variants "spawn" and "forkserver" use another start method. In the variant "before", main forks the worker
#            before it starts the thread. In the variant "subprocess", the worker is another program.
# To blame:  the start method fork.
# User sees: without a variant, the child stops at `with lock`. With a variant, the user sees nothing, and no warning.
# Fix:       use one of the variants.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=load victims=1
# EXPECT-STACK: culprit load@inside
# EXPECT-STACK: stack work@touch
# EXPECT-STACK: fork main@start
# EXPECT-BARE(spawn): ok
# EXPECT-NONE(spawn)
# EXPECT-BARE(forkserver): ok
# EXPECT-NONE(forkserver)
# EXPECT-BARE(before): ok
# EXPECT-NONE(before)
# EXPECT-BARE(subprocess): ok
# EXPECT-NONE(subprocess)
# EXPECT-WHY: python-lock-orphaned likely hang victims=1
# EXPECT-CORE: python-lock-orphaned likely hang
import multiprocessing
import subprocess
import sys
import threading

from baton import Baton, stop_helpers

lock = threading.Lock()


def load(inside):
    with lock:
        inside.give_and_park()  # MARK: inside


def start_loader():
    inside = Baton()
    threading.Thread(target=load, args=(inside,), daemon=True).start()
    inside.take()


def work():
    with lock:  # MARK: touch
        pass


def main(variant):
    if variant == "subprocess":
        start_loader()
        return subprocess.run(["true"], preexec_fn=lambda: None, check=False).returncode
    worker = multiprocessing.get_context(variant if variant in ("spawn", "forkserver") else "fork").Process(target=work)
    if variant == "before":
        worker.start()
        start_loader()
    else:
        start_loader()
        worker.start()  # MARK: start
    worker.join()
    stop_helpers()
    return worker.exitcode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
