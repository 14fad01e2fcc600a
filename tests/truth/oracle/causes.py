"""Finds why a thread is blocked for ever. In the list of causes, "it" is the blocked thread:

  self-deadlock  it holds the lock itself, and locked it in this process
  upgrade        it holds the rwlock for reading, and waits to lock it for writing
  self-held      it held the lock at its own fork. The lock records the parent's thread id, so the child cannot unlock it
  relock         it held the lock at its own fork, has not unlocked it, and locks it again
  orphan         a lost thread holds the lock, or had taken the semaphore
  ended-holder   the thread that held the lock has ended
  abandoned      the process that held the lock has ended
  lost-waker     a lost thread would have ended the wait: if forks lost no thread, the waiting thread would go on
  ring           it waits for another thread, and that thread waits for it, directly or through other threads
  victim         it waits for a thread that is blocked for ever by another cause
  lost-pool      it starts a region in a pool of libgomp whose workers a fork lost
  lost-waiter    it signals or destroys a condition variable. This call waits for lost threads to leave the variable
  no-waker       no live thread will end the wait, and no lost thread would have ended it
"""
from ancestry import copy_of
from condition_operations import lost_waiters
from undefined import Undefined

LOCKED = ("mutex", "rwlock", "guard", "once")
ENDING = {"sem": ("post",), "cond": ("signal", "broadcast"), "word": ("fset",), "future": ("fulfil",), "barrier": ("arrive",), "pipe": ("write", "close", "exit"),
          "socket": ("write", "close", "exit"), "eventfd": ("write",)}
OF_FCNTL = ("plock", "olock")


def holders(state, wait, machine):
    store = "" if machine.objects[wait.name].shared else wait.process
    value = state["m", store, wait.name]
    if wait.kind == "mutex":
        return (value[0],)
    if wait.kind in ("guard", "once"):
        return (value[1],)
    readers, writer, pending = value
    if writer is not None:
        return (writer,)
    return readers if wait.operation == "wrlock" else tuple(name for name in pending if name != wait.thread)


def knows_its_owner(state, wait, attributes):
    """True if a child cannot unlock a lock that its parent took, because only the thread whose id the lock records can unlock it. A
    rwlock records its writer, but not its readers."""
    if wait.kind == "rwlock":
        return state["m", wait.process, wait.name][1] is not None
    return any(kind in attributes for kind in ("recursive", "errorcheck", "robust"))


def cause_by_holder(machine, state, wait):
    """Returns (the cause of the wait, the live threads that hold the lock, the lost threads that hold it). If only other live
    threads hold the lock, the cause is ""."""
    shared = machine.objects[wait.name].shared
    attributes = machine.objects[wait.name].attributes
    live, lost = [], []
    for holder in holders(state, wait, machine):
        process, _, _, status = state["t", holder]
        if holder == wait.thread:
            return ("upgrade" if wait.kind == "rwlock" else "self-deadlock"), (), ()
        if shared and status == "live" or process == wait.process and status == "live":
            live.append(holder)
        elif shared:
            return ("ended-holder" if status == "ended" and state["p", process][1] == "live" else "abandoned"), (), ()
        elif process == wait.process:
            return "ended-holder", (), ()
        else:
            fate, now = copy_of(state, wait.process, holder)
            if fate == "lost":
                lost.append(now)
            elif fate == "ended":
                return "ended-holder", (), ()
            elif knows_its_owner(state, wait, attributes):
                return "self-held", (), ()
            elif now == wait.thread:
                return "relock", (), ()
            elif state["t", now][3] != "live":
                return "ended-holder", (), ()
            else:
                live.append(now)
    return ("orphan" if lost else ""), tuple(live), tuple(lost)


def remaining(machine, state, thread):
    """Returns the remaining steps of a live thread, without the step in which it waits."""
    begun = 0 if machine.is_in_handler(state, thread) else 1
    indices = machine.lists.get(machine.ghost_of(thread), [])[state["t", thread][1] + begun:]
    return [machine.scenario.steps[index] for index in indices]


def could_end(machine, state, wait):
    """Returns the live threads that would end the wait by their remaining steps or by their end."""
    if wait.kind == "thread":
        return (wait.name,)
    if wait.kind == "child":
        return tuple(machine.live_threads(state, wait.name))
    if wait.kind == "timerfd":
        return tuple(thread for thread in machine.live_threads(state) if thread != wait.thread and any(
            step.operation == "arm" and step.arguments[0] == wait.name for step in remaining(machine, state, thread)))
    if wait.operation == "open":
        return tuple(thread for thread in machine.live_threads(state) if thread != wait.thread and any(
            step.operation == "open" and step.arguments[0] == wait.name for step in remaining(machine, state, thread)))
    if wait.operation in ("read", "receive", "fill"):
        end = (wait.name, "r" if wait.operation == "fill" else "w")
        having = {*machine.openers(state, *end), *machine.carriers(state, end)}
        return tuple(thread for process in sorted(having) for thread in machine.live_threads(state, process))
    if wait.kind == "file":
        return tuple(thread for process in file_holders(state, wait) for thread in machine.live_threads(state, process))
    shared = machine.objects[wait.name].shared
    return tuple(thread for thread in machine.live_threads(state, None if shared else wait.process)
                 if thread != wait.thread and any(step.operation in ENDING[wait.kind] and step.arguments[0] == wait.name for step in remaining(machine, state, thread)))


def file_holders(state, wait):
    """Returns the processes that hold the lock of a file. Such a lock belongs to one process, or to an open file, which several
    processes may share."""
    held = state.get(("fcntl" if wait.operation in OF_FCNTL else "flock", wait.name))
    if wait.operation in OF_FCNTL:
        kind, held = held
        if kind == "process":
            return [held]
    return [key[1] for key, value in state.items() if key[0] == "desc" and key[2] == wait.name and value == held]


def lost_of(state, process):
    """Returns the threads that were lost at the fork of this process and at the forks of its ancestors."""
    return tuple(name for _, _, lost, _ in state.get(("way", process), ()) for name, _, _ in lost)


def lost_wakers(wait, ghosts, state):
    """Returns the lost threads of the process, if the waiting thread would go on in the world in which forks lose no
    thread. Returns () if the waiting thread would not go on there."""
    lost = lost_of(state, wait.process)
    if not lost:
        return ()
    machine, ends = ghosts
    if not ends:
        raise Undefined("it is not known whether a lost thread would have ended the wait")
    goes_on = [end for end in ends if machine.place_of(end, wait.thread) != machine.place_of(state, wait.thread) or end["t", wait.thread][3] != "live"]
    return lost if goes_on else ()


def takers_lost(state, wait):
    """Returns the lost threads that had taken the semaphore at the fork and had not posted it."""
    took = state.get(("took", wait.process, wait.name), ()) if wait.kind == "sem" else ()
    return tuple(name for name in lost_of(state, wait.process) if name in took)


def reachable(graph, start):
    found, frontier = set(), [start]
    while frontier:
        for other in graph.get(frontier.pop(), ()):
            if other not in found:
                found.add(other)
                frontier.append(other)
    return found


def cause_of_call(state, wait):
    """Returns (cause, lost threads) of a wait inside a library whose data still lists threads that a fork lost; ("", ()) for other
    waits."""
    if wait.kind == "pool":
        return "lost-pool", lost_of(state, wait.process)
    if wait.kind == "cond" and wait.operation in ("signal", "broadcast", "destroy"):
        return "lost-waiter", lost_waiters(state, ("m", wait.process, wait.name))
    return "", ()


def find_causes(machine, truth, ghosts):
    state = truth.state
    stuck = {wait.thread: wait for wait in truth.stuck()}
    graph = {}
    for wait in stuck.values():
        wait.cause, wait.lost = cause_of_call(state, wait)
        if wait.cause:
            pass
        elif wait.kind in LOCKED:
            wait.cause, wait.peers, wait.lost = cause_by_holder(machine, state, wait)
        else:
            wait.peers = could_end(machine, state, wait)
        graph[wait.thread] = () if wait.cause else [peer for peer in wait.peers if peer in stuck]
    for wait in stuck.values():
        if wait.cause:
            continue
        wait.lost = lost_wakers(wait, ghosts, state)
        if any(peer in truth.waits and truth.waits[peer].open_by for peer in wait.peers):
            raise Undefined("a blocked thread waits for a thread whose wait an event from outside could still end")
        beyond = reachable(graph, wait.thread)
        if wait.thread in beyond:
            ring = [thread for thread in beyond if wait.thread in reachable(graph, thread)]
            wait.ring_kinds = frozenset(stuck[thread].kind for thread in ring)
            wait.cause = "ring"
        elif beyond:
            wait.cause = "victim"
        elif takers_lost(state, wait):
            wait.cause, wait.lost = "orphan", takers_lost(state, wait)
        else:
            wait.cause = "lost-waker" if wait.lost else "no-waker"
