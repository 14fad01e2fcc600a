# Mechanism: two threads take two locks in opposite orders. No fork is needed; a lock of Python has no owner that memory
#            could show.
# To blame:  whoever takes them in another order than the rest of the program.
# User sees: the script stops, 0 % CPU.
# Fix:       one order for all locks.
# Repaired:  both take them in the same order.
#
# EXPECT-BARE: hang
# EXPECT: deadlock proven/unknown hang culprit="2 threads" victims=0
# EXPECT-WHY: deadlock proven/unknown hang culprit="2 threads" victims=0
# EXPECT-STACK: stack move@second <module>@forward
#
# With Python's own handler of SIGINT, which might still end the wait:
# EXPECT(interrupt): deadlock likely/unknown hang culprit="2 threads" victims=0
# EXPECT-WHY(interrupt): deadlock likely/unknown hang culprit="2 threads" victims=0
# EXPECT-STACK(interrupt): stack move@second <module>@forward
import signal
import sys
import threading

# As scripts with threads do, so that Ctrl-C ends them at once. The other one is what a script has that a terminal starts.
signal.signal(signal.SIGINT, signal.default_int_handler if sys.argv[1] == "interrupt" else signal.SIG_DFL)

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
