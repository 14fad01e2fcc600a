# Mechanism: a thread is importing a module while main forks. The lock of the module stays taken in the child.
# To blame:  os.fork() in a process with threads.
# User sees: the child stops in an import statement.
# Fix:       import everything before the first thread is started. Or use spawn or forkserver.
# Repaired:  the import has ended before the fork.
#
# EXPECT-BARE: hang
# EXPECT: python-lock-orphaned proven hang start=import_late victims=1
# EXPECT-STACK: culprit hand_over@inside
# EXPECT-STACK: stack <module>@touch
# EXPECT-STACK: fork <module>@fork
# EXPECT-CORE: python-lock-orphaned likely hang
import builtins
import os
import sys
import threading

from baton import Baton, end_of

importer_is_inside = Baton()


def hand_over():
    if sys.argv[1] == "repaired":
        importer_is_inside.give()
    else:
        importer_is_inside.give_and_park()  # MARK: inside


def import_late():
    import slow.plugin  # noqa: F401


builtins.during_import = hand_over
importer = threading.Thread(target=import_late, daemon=True)
importer.start()
importer_is_inside.take()
if sys.argv[1] == "repaired":
    importer.join()
child = os.fork()  # MARK: fork
if child == 0:
    import slow.plugin  # noqa: F401  # MARK: touch
    os._exit(0)
sys.exit(end_of(child))
