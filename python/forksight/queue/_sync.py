"""RLock, Semaphore and Condition for processes that may be killed.

Each of these classes uses locks of the class Lock. The kernel releases such a lock when its holder ends. So a unit of a
semaphore becomes free when its holder is killed, and a condition knows which of its waiters still live."""
import os
import time
import weakref

from ._kernel import PAGE, Segment, futex_add_one_and_wake, futex_wait
from ._locks import LOCK_WORDS, SLICE, Lock

SERIAL = 0                          # a word that grows with each release() and each notify(); waiters sleep on it
STATE = LOCK_WORDS - 1              # the one word of a lock that Lock does not use
MOST = PAGE // 4 // LOCK_WORDS - 1  # how many locks fit into a page; their words follow the first LOCK_WORDS words
FREE, WAITS, NOTIFIED = range(3)    # the state of a place of a condition


def _make_locks(segment, count):
    """Returns `count` locks in one segment. Lock number i uses the byte i + 1 and the words from LOCK_WORDS * (i + 1) on."""
    return [Lock.of(segment, i + 1, LOCK_WORDS * (i + 1)) for i in range(count)]


def _deadline_of(timeout):
    return None if timeout is None else time.monotonic() + max(timeout, 0)


class RLock:
    """A lock that its holder may acquire again. The lock is free after as many calls of release() as of acquire(). If
    its holder ends, the next process can acquire the lock, as with Lock. `abandoned` is then the id of the process that
    ended."""

    def __init__(self):
        self._begin(Lock())

    def _begin(self, lock):
        self._lock = lock
        lock._segment.users.append(weakref.ref(self))
        self.renew()

    def renew(self):
        """Notes that this process does not hold the lock. Called for a new object, and in a forked child, which does
        not hold the locks of its parent."""
        self._more = 0  # how often the holder has acquired the lock again; 0 while no thread of this process holds it

    @classmethod
    def of(cls, lock):
        made = cls.__new__(cls)
        made._begin(lock)
        return made

    def __reduce__(self):
        return RLock.of, (self._lock,)

    def __repr__(self):
        return repr(self._lock).replace(".Lock ", ".RLock ", 1)

    held = property(lambda self: self._lock.held, doc="True if this process holds the lock.")
    owner = property(lambda self: self._lock.owner, doc="The id of the process that holds the lock, or None.")
    abandoned = property(lambda self: self._lock.abandoned,
                         doc="The id of the process that ended while it held the lock, or None.")

    def held_here(self):
        """True if this thread holds the lock."""
        return self._lock.held_here()

    def acquire(self, block=True, timeout=None):
        """Acquires the lock and returns True. Returns False if another thread or process still holds it after `timeout` seconds,
        or at once if `block` is false."""
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
            # A handler of a signal may have raised after acquire(). __exit__() is not called then.
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
            # A handler of a signal may have raised before release() did anything.
            if self._lock.held_here() and self._more == more:
                self.release()
            raise


class Semaphore:
    """A semaphore of `value` units. acquire() takes a unit. release() gives back a unit that this process has acquired. The units
    of a process that ends become free. A semaphore cannot start at 0, so one process cannot use it to signal another."""

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
        """Returns how many units are free."""
        return sum(not unit.held and not self._segment.is_locked_elsewhere(unit._byte) for unit in self._units)

    @property
    def owners(self):
        """The ids of the processes that hold units, one for each unit."""
        return [owner for owner in (unit.owner for unit in self._units) if owner]

    def acquire(self, block=True, timeout=None):
        """Takes a unit and returns True. Returns False if no unit was free within `timeout` seconds, or at once if `block` is
        false. If it returns True and `abandoned` is not None, the process with that id ended while it held this unit. If
        acquire() raises, it has taken no unit."""
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
        """Gives back a unit of this thread. If this thread has none, it gives back a unit of another thread of this process."""
        held = self._held_here() or [unit for unit in self._units if unit.held]
        if not held:
            raise ValueError("release() of a semaphore of which this process holds no unit")
        self._give_back(held[0])

    def _give_back(self, unit):
        unit.release()
        futex_add_one_and_wake(self._segment.address_of(SERIAL))

    def _held_here(self):
        """Returns the units that this thread holds."""
        return [unit for unit in self._units if unit.held_here()]

    def _give_back_all_but(self, before):
        """Gives back the units of this thread that are not in `before`. Called after a handler of a signal has raised."""
        for unit in self._held_here():
            if unit not in before:
                self._give_back(unit)

    def __enter__(self):
        before = self._held_here()
        try:
            self._acquire(True, None)
            return self
        except BaseException:
            self._give_back_all_but(before)  # __exit__() is not called if __enter__() raises
            raise

    def __exit__(self, *_):
        before = None
        try:
            before = len(self._held_here())
            self.release()
        except BaseException:
            # A handler of a signal may have raised before release() did anything.
            left = len(self._held_here())
            if left and before in (None, left):
                self.release()
            raise


class BoundedSemaphore(Semaphore):
    """The same as Semaphore, which never has more units than it started with."""


class Condition:
    """Has the methods of multiprocessing.Condition: wait(), wait_for(), notify(), notify_all(), and those of its lock. If a
    process is notified and is killed before its wait() returns, another waiter gets the notification."""

    def __init__(self, lock=None):
        self._begin(RLock() if lock is None else lock, Segment(PAGE, "forksight-condition"))

    def _begin(self, lock, segment):
        self._lock, self._segment = lock, segment
        self._places = _make_locks(segment, MOST)  # each waiter holds one; the kernel releases it if the waiter dies

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
        """Returns the places whose waiter was notified, and ended before its wait() returned."""
        return [place for place in self._places if self._state_of(place) == NOTIFIED and not self._lives(place)]

    def _pass_on(self):
        """If notified waiters have ended, passes their notifications on to other waiters. The caller holds the lock."""
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
        """Wakes `n` waiters, or all if fewer wait. The caller must hold the lock."""
        self._check_lock("notify()")
        self._pass_on()
        self._notify(n)

    def notify_all(self):
        self.notify(len(self._places))

    def wait(self, timeout=None):
        """Releases the lock, waits for a notify(), and acquires the lock again. Returns True if a notify() came, and
        False if none came within `timeout` seconds. If a handler of a signal raises, wait() acquires the lock before it
        passes the exception on."""
        self._check_lock("wait()")
        mine = []
        try:
            return self._wait(mine, _deadline_of(timeout))
        except BaseException:
            # A handler of a signal may have raised after a place was locked and before it was appended to `mine`.
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
            # The previous waiter of this place was notified, and ended before its wait() returned. So another waiter
            # gets the notification.
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
                self._notify(1)  # another waiter gets the notification, because this wait() raises
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
            except OSError:  # the kernel cannot lock the byte at all, so no attempt would succeed
                raise
            except BaseException as error:  # a handler of a signal raised it; the caller's `with` will release the lock
                raised = error
        if more:
            self._lock._more = more
        if raised is not None:
            raise raised

    def wait_for(self, predicate, timeout=None):
        """Waits until predicate() is true or `timeout` seconds have passed. Returns the last result of predicate()."""
        deadline = _deadline_of(timeout)
        result = predicate()
        while not result:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result
