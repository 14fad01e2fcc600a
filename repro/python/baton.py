"""What the cases share: handovers that force an interleaving. Pipes, never a lock: nothing here may be part of the defect."""
import os
from multiprocessing import forkserver, resource_tracker


class Baton:
    def __init__(self):
        self._read, self._write = os.pipe()

    def give(self):
        os.write(self._write, b"x")

    def take(self):
        if os.read(self._read, 1) != b"x":
            raise RuntimeError("nobody is left to give the baton")


    def give_and_park(self):
        """One line for the caller: a fork may find it on either side of the handover. It never comes back."""
        self.give()
        os.read(os.pipe()[0], 1)


def end_of(child):
    """Waits for the child; its exit status, or 128 + the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256


def stop_helpers():
    """Those of multiprocessing's forkserver and spawn end by themselves, some time after us; the judge wants nobody left behind."""
    forkserver._forkserver._stop()
    resource_tracker._resource_tracker._stop()
