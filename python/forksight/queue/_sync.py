"""RLock, Semaphore and Condition for processes that may be killed.

Each is built from the locks of _locks.py. Such a lock ends with the process that holds it. So a unit of a semaphore comes back
when its holder is killed, and a condition knows which of its waiters still live."""
import os
import time
import weakref

from ._kernel import PAGE, Segment, futex_add_one_and_wake, futex_wait
from ._locks import LOCK_WORDS, SLICE, Lock

SERIAL = 0                          # a word that grows with each release() or notify(): waiters sleep on it
STATE = LOCK_WORDS - 1              # the word of a lock that Lock itself does not use
MOST = PAGE // 4 // LOCK_WORDS - 1  # locks of one page: their words follow the first LOCK_WORDS words
FREE, WAITS, NOTIFIED = range(3)    # the state of a place of a condition


def _make_locks(segment, count):
    """`count` locks in one segment. Lock number i has the byte i + 1 and the words from LOCK_WORDS * (i + 1) on."""
    return [Lock.of(segment, i + 1, LOCK_WORDS * (i + 1)) for i in range(count)]


def _deadline_of(timeout):
    return None if timeout is None else time.monotonic() + max(timeout, 0)


class RLock:
    """A lock that the thread which holds it may acquire again. It is free after as many calls of release(). Like Lock, it goes to
    the next process when its holder ends, and `abandoned` is then the id of that process."""

    def __init__(self):
        self._begin(Lock())

    def _begin(self, lock):
        self._lock = lock
        lock._segment.users.append(weakref.ref(self))
        self.renew()

    def renew(self):
        """In a forked child: the holder is the parent, if anybody."""
        self._more = 0  # how often the holder has acquired it again; 0 while nobody holds it

    @classmethod
    def of(cls, lock):
        made = cls.__new__(cls)
        made._begin(lock)
        return made

    def __reduce__(self):
        return RLock.of, (self._lock,)

    def __repr__(self):
        return repr(self._lock).replace(".Lock ", ".RLock ", 1)

    held = property(lambda self: self._lock.held, doc="Whether this process holds it.")
    owner = property(lambda self: self._lock.owner, doc="The process that holds it, or None.")
    abandoned = property(lambda self: self._lock.abandoned, doc="The process that ended while it held the lock, before this one got it, or None.")

    def held_here(self):
        """Whether this thread holds it."""
        return self._lock.held_here()

    def acquire(self, block=True, timeout=None):
        """True, or False if another thread or process holds it for longer than `timeout` seconds."""
        if self._lock.held_here():
            self._more += 1
            return True
        return self._lock.acquire(block, timeout)

    def release(self):
        if not self._lock.held_here():
            raise ValueError("release() of a recursive lock that this thread does not hold")
        if self._more:
            self._more -= 1
        else:
            self._lock.release()

    def __enter__(self):
        was_held, more = self._lock.held_here(), self._more
        try:
            self.acquire()
            return self
        except BaseException:
            # A handler of a signal has raised after acquire(): there will be no __exit__().
            if self._lock.held_here():
                self._more = more
                if not was_held:
                    self._lock.release()
            raise

    def __exit__(self, *_):
        more = self._more
        try:
            self.release()
        except BaseException:
            # A handler of a signal has raised, perhaps before anything was released.
            if self._lock.held_here() and self._more == more:
                self.release()
            raise


class Semaphore:
    """At most `value` holders at a time. Each acquire() takes a unit, and a process that ends gives its units back. So release() gives
    back a unit that this process has acquired: a semaphore that starts at 0, as a signal, is not offered."""

    def __init__(self, value=1):
        if not 1 <= value <= MOST:
            raise ValueError(f"a semaphore of {value} units: it can have 1 to {MOST}. For a signal use an Event, a Condition or a Queue")
        self._begin(Segment(PAGE, "forksight-semaphore"), value)

    def _begin(self, segment, value):
        self._segment = segment
        self._units = _make_locks(segment, value)
        self.abandoned = None

    @classmethod
    def of(cls, segment, value):
        made = cls.__new__(cls)
        made._begin(segment, value)
        return made

    def __reduce__(self):
        return type(self).of, (self._segment, len(self._units))

    def __repr__(self):
        return f"<forksight.queue.{type(self).__name__} {self.get_value()} of {len(self._units)} units free>"

    def get_value(self):
        """How many units are free."""
        return sum(not unit.held and not self._segment.is_locked_elsewhere(unit._byte) for unit in self._units)

    @property
    def owners(self):
        """The ids of the processes that hold units, one for each unit."""
        return [owner for owner in (unit.owner for unit in self._units) if owner]

    def acquire(self, block=True, timeout=None):
        """True, or False if no unit was free within `timeout` seconds. If it returns True and `abandoned` is not None, the process of
        that id ended while it held this unit. If it raises, no unit was taken."""
        before = self._held_here()
        try:
            return self._acquire(block, timeout)
        except BaseException:
            self._give_back_all_but(before)
            raise

    def _acquire(self, block, timeout):
        deadline = _deadline_of(timeout)
        words, first = self._segment.words, os.getpid() % len(self._units)
        while True:
            seen = words[SERIAL]
            for unit in self._units[first:] + self._units[:first]:
                if unit.acquire(False):
                    self.abandoned = unit.abandoned
                    return True
            left = SLICE if deadline is None else deadline - time.monotonic()
            if not block or left <= 0:
                return False
            futex_wait(self._segment.address_of(SERIAL), seen, min(left, SLICE))

    def release(self):
        """Gives back a unit, of this thread if it has one, else of another thread of this process."""
        held = self._held_here() or [unit for unit in self._units if unit.held]
        if not held:
            raise ValueError("release() of a semaphore of which this process holds no unit")
        self._give_back(held[0])

    def _give_back(self, unit):
        unit.release()
        futex_add_one_and_wake(self._segment.address_of(SERIAL))

    def _held_here(self):
        """The units that this thread holds."""
        return [unit for unit in self._units if unit.held_here()]

    def _give_back_all_but(self, before):
        """After a handler of a signal has raised: gives back the unit that this thread has taken since, if any."""
        for unit in self._held_here():
            if unit not in before:
                self._give_back(unit)

    def __enter__(self):
        before = self._held_here()
        try:
            self._acquire(True, None)
            return self
        except BaseException:
            self._give_back_all_but(before)  # there will be no __exit__()
            raise

    def __exit__(self, *_):
        before = None
        try:
            before = len(self._held_here())
            self.release()
        except BaseException:
            # A handler of a signal has raised, perhaps before anything was released.
            left = len(self._held_here())
            if left and before in (None, left):
                self.release()
            raise


class BoundedSemaphore(Semaphore):
    """The same: a semaphore of this module never has more units than it started with."""


class Condition:
    """As multiprocessing.Condition: wait(), wait_for(), notify(), notify_all(), and the methods of its lock. A process that is killed
    while it waits takes no notify() with it: the next waiter gets that."""

    def __init__(self, lock=None):
        self._begin(RLock() if lock is None else lock, Segment(PAGE, "forksight-condition"))

    def _begin(self, lock, segment):
        self._lock, self._segment = lock, segment
        self._places = _make_locks(segment, MOST)  # each waiter holds one: the kernel ends that with the waiter

    @classmethod
    def of(cls, lock, segment):
        made = cls.__new__(cls)
        made._begin(lock, segment)
        return made

    def __reduce__(self):
        return Condition.of, (self._lock, self._segment)

    def acquire(self, block=True, timeout=None):
        return self._lock.acquire(block, timeout)

    def release(self):
        self._lock.release()

    def __enter__(self):
        self._lock.__enter__()
        return self

    def __exit__(self, *about):
        return self._lock.__exit__(*about)

    def _check_lock(self, what):
        if not self._lock.held_here():
            raise RuntimeError(f"{what} of a condition whose lock this thread does not hold")

    def _state_of(self, place, new=None):
        if new is not None:
            self._segment.words[place._word + STATE] = new
        return self._segment.words[place._word + STATE]

    def _lives(self, place):
        return place.held or self._segment.is_locked_elsewhere(place._byte)

    def _find_lost(self):
        """The places that were notified, and whose waiter ended before it could return."""
        return [place for place in self._places if self._state_of(place) == NOTIFIED and not self._lives(place)]

    def _pass_on(self):
        """Gives the notifications of waiters that have ended to others. Under the lock."""
        lost = self._find_lost()
        for place in lost:
            self._state_of(place, FREE)
        if lost:
            self._notify(len(lost))

    def _notify(self, count):
        for place in self._places:
            if count <= 0:
                break
            if self._state_of(place) != WAITS:
                continue
            if self._lives(place):
                self._state_of(place, NOTIFIED)
                count -= 1
            else:
                self._state_of(place, FREE)
        futex_add_one_and_wake(self._segment.address_of(SERIAL))

    def notify(self, n=1):
        """Wakes `n` waiters, if so many wait. The lock must be held."""
        self._check_lock("notify()")
        self._pass_on()
        self._notify(n)

    def notify_all(self):
        self.notify(len(self._places))

    def wait(self, timeout=None):
        """Releases the lock, waits for a notify(), and acquires the lock again. True, or False if none came within `timeout` seconds.
        If a handler of a signal raises, the lock is acquired first, and then the exception goes on."""
        self._check_lock("wait()")
        mine = []
        try:
            return self._wait(mine, _deadline_of(timeout))
        except BaseException:
            # Perhaps a handler of a signal has raised between the lock of a place and the note of it.
            for place in self._places:
                if place.held_here() and (place in mine or self._state_of(place) == FREE):
                    self._leave(place)
            raise

    def _wait(self, mine, deadline):
        place = next((place for place in self._places if place.acquire(False)), None)
        if place is None:
            raise RuntimeError(f"a condition can have {len(self._places)} waiters at a time")
        mine.append(place)
        if self._state_of(place) == NOTIFIED:
            # The waiter that had this place was notified, and ended before it could return.
            self._state_of(place, FREE)
            self._notify(1)
        more = getattr(self._lock, "_more", 0)
        try:
            self._state_of(place, WAITS)
            if more:
                self._lock._more = 0
            self._lock.release()
            self._sleep(place, deadline)
            self._acquire_again(more)
            told = self._state_of(place) == NOTIFIED
        except BaseException:
            self._acquire_again(more)
            if self._state_of(place) == NOTIFIED:
                self._state_of(place, FREE)
                self._notify(1)  # this wait has not used it
            raise
        self._leave(place)
        return told

    def _leave(self, place):
        self._state_of(place, FREE)
        if place.held_here():
            place.release()

    def _sleep(self, place, deadline):
        while True:
            seen = self._segment.words[SERIAL]
            if self._state_of(place) == NOTIFIED:
                return
            left = SLICE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return
            futex_wait(self._segment.address_of(SERIAL), seen, min(left, SLICE))
            if self._state_of(place) == WAITS and self._find_lost() and self._lock.acquire(False):
                self._pass_on()
                self._lock.release()

    def _acquire_again(self, more):
        raised = None
        while not self._lock.held_here():
            try:
                self._lock.acquire()
            except OSError:  # its memory is gone: no attempt will succeed
                raise
            except BaseException as error:  # of a handler of a signal; the caller's `with` will release the lock
                raised = error
        if more:
            self._lock._more = more
        if raised is not None:
            raise raised

    def wait_for(self, predicate, timeout=None):
        """Waits until predicate() is true, and returns what it returned last."""
        deadline = _deadline_of(timeout)
        result = predicate()
        while not result:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result
