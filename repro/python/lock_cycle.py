# Mechanism: two threads take two locks in opposite orders. There is no fork. The memory of a Python lock records no
#            owner.
# To blame:  the thread that takes the locks in another order than the rest of the program.
# User sees: the script stops, at 0 % CPU.
# Fix:       take the locks in one order everywhere.
# Repaired:  both threads take the locks in the same order.
#
# EXPECT-BARE: hang
# EXPECT: deadlock proven/unknown hang culprit="2 threads" victims=0
# EXPECT-WHY: deadlock proven/unknown hang culprit="2 threads" victims=0
# EXPECT-STACK: stack move@second <module>@forward
#
# Variant "interrupt": Python's own handler of SIGINT is set, and might still end the wait:
# EXPECT(interrupt): deadlock likely/unknown hang culprit="2 threads" victims=0
# EXPECT-WHY(interrupt): deadlock likely/unknown hang culprit="2 threads" victims=0
# EXPECT-STACK(interrupt): stack move@second <module>@forward
import signal
import sys
import threading

# Many scripts with threads set SIG_DFL, so that Ctrl-C ends them at once. This script does so, too. In the variant
# "interrupt" it has Python's own handler, which every script has by default.
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
