# Mechanism: two threads take two locks in opposite orders. No fork is needed; a lock of Python has no owner that memory
#            could show.
# To blame:  whoever takes them in another order than the rest of the program.
# User sees: the script stops, 0 % CPU.
# Fix:       one order for all locks.
# Repaired:  both take them in the same order.
#
# EXPECT-BARE: hang
# EXPECT: deadlock certain hang culprit="2 threads" victims=0
# EXPECT-STACK: stack move@second <module>@forward
import signal
import sys
import threading

# As scripts with threads do, so that Ctrl-C ends them at once. With Python's own handler a signal might still end the
# wait, and nothing is proved.
signal.signal(signal.SIGINT, signal.SIG_DFL)

repaired = sys.argv[1] == "repaired"
source, target = threading.Lock(), threading.Lock()
both_have_one = threading.Barrier(1 if repaired else 2)


def move(first, second):
    with first:
        both_have_one.wait()
        with second:  # MARK: second
            pass


backward = threading.Thread(target=move, args=(source, target) if repaired else (target, source))
backward.start()
move(source, target)  # MARK: forward
backward.join()
