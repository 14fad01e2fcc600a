# Mechanism: a thread is inside of write() on a buffered file (a full pipe) while main forks. The lock of the file
#            object stays taken in the child.
# To blame:  os.fork() in a process with threads.
# User sees: the child stops at its first write to the same file.
# Fix:       use spawn or forkserver, or give the child a file of its own.
# Repaired:  the child opens a buffered file of its own.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=write_much victims=1
# EXPECT-STACK: culprit write_much@inside
# EXPECT-STACK: stack <module>@touch
# EXPECT-STACK: fork <module>@fork
# EXPECT-WHY: python-lock-orphaned likely hang victims=1
# EXPECT-CORE: python-lock-orphaned likely hang
import fcntl
import os
import sys
import threading

from baton import end_of

reader, writer = os.pipe()
fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ; CPython 3.9 has no name for it
log = open(writer, "wb", buffering=1024)


def write_much():
    log.write(b"x" * 65536)  # MARK: inside


threading.Thread(target=write_much, daemon=True).start()
# When the first byte comes, the thread is inside of write() and holds the lock. write() does not return before all
# bytes are read.
os.read(reader, 1)
child = os.fork()  # MARK: fork
if child == 0:
    if sys.argv[1] == "repaired":
        log = open(os.devnull, "wb", buffering=1024)
    log.write(b"y")  # MARK: touch
    os._exit(0)
sys.exit(end_of(child))
