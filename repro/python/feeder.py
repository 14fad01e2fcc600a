# Mechanism: a multiprocessing.Queue sends its items from a thread of its own, the feeder. The first put() starts the
#            feeder. A child of os.fork() has the queue, but not the feeder. What the child puts into the queue is never
#            sent.
# To blame:  os.fork(). In a process that multiprocessing starts, the queue starts a new feeder.
# User sees: the child waits for an answer to a question that was never sent.
# Fix:       start the child with multiprocessing.Process and not with os.fork(), or let the child make its own queues.
# Repaired:  multiprocessing.Process starts the child.
#
# EXPECT-BARE: hang
# EXPECT: lost-feeder-thread likely hang start=_feed victims=2
# EXPECT-STACK: stack ask@touch <module>@child
# EXPECT-STACK: fork <module>@fork
import multiprocessing
import os
import sys

from baton import end_of

context = multiprocessing.get_context("fork")
questions, answers = context.Queue(), context.Queue()


def answer():
    while True:
        question = questions.get()
        if question is None:
            return
        answers.put(question + 1)


def ask(number):
    questions.put(number)
    return answers.get()  # MARK: touch


server = context.Process(target=answer)
server.start()
if ask(1) != 2:  # this call starts the feeder
    sys.exit(1)
if sys.argv[1] == "repaired":
    asker = context.Process(target=ask, args=(2,))
    asker.start()
    asker.join()
    status = asker.exitcode
else:
    child = os.fork()  # MARK: fork
    if child == 0:
        os._exit(0 if ask(2) == 3 else 1)  # MARK: child
    status = end_of(child)
questions.put(None)
server.join()
sys.exit(status)
