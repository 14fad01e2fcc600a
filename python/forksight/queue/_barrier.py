"""A barrier. If a process is killed while it waits in the barrier, the barrier breaks, so that the others do not wait for ever.

Each waiter (a thread of a process) has a place. A place consists of a word, which has the state of the waiter, and of a
kernel lock on a byte. The waiter holds the kernel lock until its wait is over or its process ends. The words of the
places are changed only under the barrier's Lock. Each waiter reads from its own place how its wait ended. So a reset,
an abort or a time-out does not affect a waiter that was let through before."""
import ctypes
import time
import weakref
from threading import BrokenBarrierError

from ._kernel import F_OFD_SETLK, F_UNLCK, F_WRLCK, PAGE, Segment, check_lock_errno, fcntl, futex_wait, futex_wake
from ._locks import LOCK_WORDS, MASK, SLICE, Lock

PARTIES, STATE, LETTING, SERIAL = range(LOCK_WORDS, LOCK_WORDS + 4)
PLACES = 16  # the first word of the places
MOST_PARTIES = 400
FREE, WAITS, THROUGH, BROKEN = range(4)  # states of a place
WELL, IS_BROKEN = 0, 1                    # states of the barrier
ALL = 0x7fffffff
# How many seconds a waiter that gives up waits for the barrier's lock. The holder of the lock may be stopped. A waiter
# that does not get the lock in this time leaves its place. The other waiters then consider it dead, and break the
# barrier.
PATIENCE = 1.0


class Barrier:
    """A barrier with the members of multiprocessing.Barrier: wait(), reset(), abort(), parties, n_waiting and broken. A process
    that is killed while it waits breaks the barrier for the others."""

    def __init__(self, parties, action=None, timeout=None):
        if not 1 <= parties <= MOST_PARTIES:
            raise ValueError(f"a barrier of {parties} parties: it can have 1 to {MOST_PARTIES}")
        self._begin(Segment(PAGE, "forksight-barrier"), action, timeout)
        self._words[PARTIES] = parties

    def _begin(self, segment, action, timeout):
        self._segment, self._action, self._timeout = segment, action, timeout
        self._words = segment.words
        self._lock = Lock.of(segment)
        segment.users.append(weakref.ref(self))
        self.renew()

    def renew(self):
        """Notes that this process has no places. Called for a new object, and in a forked child, which does not have
        the places of its parent."""
        self._mine = set()  # places of threads of this process

    @classmethod
    def of(cls, segment, action, timeout):
        made = cls.__new__(cls)
        made._begin(segment, action, timeout)
        return made

    def __reduce__(self):
        return Barrier.of, (self._segment, self._action, self._timeout)

    @property
    def parties(self):
        return self._words[PARTIES]

    @property
    def broken(self):
        return self._words[STATE] == IS_BROKEN

    @property
    def n_waiting(self):
        with self._lock:
            self._look()
            return len(self._waiting())

    # The caller of the methods from here to _take_place() holds the lock of the barrier.

    def _places(self):
        # There are twice as many places as parties. A waiter that was let through keeps its place until it has read the
        # state, and the parties of the next round may come before that.
        return range(2 * self.parties)

    def _waiting(self):
        return [place for place in self._places() if self._words[PLACES + place] == WAITS]

    def _end_all(self, state):
        """Writes `state` into the place of each waiter, and wakes all waiters."""
        for place in self._waiting():
            self._words[PLACES + place] = state
        self._words[SERIAL] = (self._words[SERIAL] + 1) & MASK
        futex_wake(self._segment.address_of(SERIAL), ALL)

    def _break(self):
        self._words[STATE] = IS_BROKEN
        self._end_all(BROKEN)

    def _give_up(self, place):
        """If the waiter in this place still waits, breaks the barrier. If its wait has ended already, does nothing."""
        if self._words[PLACES + place] == WAITS:
            self._words[PLACES + place] = BROKEN
            self._break()

    def _let_through(self):
        # If this process is killed before it has written all places, the next holder of the lock sees LETTING, and lets the
        # other waiters through.
        self._words[LETTING] = 1
        self._end_all(THROUGH)
        self._words[LETTING] = 0

    def _look(self):
        """If a process died in _let_through(), completes what that process had begun. Breaks the barrier if a waiter
        has died."""
        if self._words[LETTING]:
            self._let_through()
        for place in self._waiting():
            if place not in self._mine and not self._segment.is_locked_elsewhere(self._life(place)):
                self._words[PLACES + place] = FREE
                self._break()

    def _life(self, place):
        """Returns the byte whose kernel lock shows that the waiter in this place is alive."""
        return 1 + place

    def _take_place(self, places):
        """Appends a free place to `places`. Appends nothing if each place belongs to a waiter, or to a thread that has not yet read
        how its wait ended."""
        for place in self._places():
            if place in self._mine or self._words[PLACES + place] == WAITS:
                continue
            life = self._segment.byte_lock(self._life(place), F_WRLCK)
            if fcntl(self._segment.descriptor, F_OFD_SETLK, ctypes.byref(life)) == 0:
                places.append(place)
                self._mine.add(place)
                return
            check_lock_errno()

    # The caller of the methods from here on need not hold the lock of the barrier, except for _arrive().

    def _leave(self, place):
        """Releases the kernel lock of the place. The word of the place stays as it is, because only a holder of the
        barrier's lock changes words."""
        life = self._segment.byte_lock(self._life(place), F_UNLCK)
        fcntl(self._segment.descriptor, F_OFD_SETLK, ctypes.byref(life))
        self._mine.discard(place)

    def wait(self, timeout=None):
        """Waits until all parties have come. Returns an index from 0 to parties - 1, which is different for each party. Raises
        BrokenBarrierError if the barrier is broken or becomes broken. If not all parties have come after `timeout` seconds, it
        raises BrokenBarrierError and breaks the barrier for the others."""
        timeout = self._timeout if timeout is None else timeout
        deadline = None if timeout is None else time.monotonic() + max(timeout, 0)
        places = []
        try:
            while True:
                self._acquire(deadline)
                index = self._arrive(places)
                self._lock.release()
                if index == self.parties - 1:
                    return index
                if places:
                    return self._sleep(places[0], index, deadline)
                if deadline is not None and time.monotonic() >= deadline:
                    raise BrokenBarrierError
                time.sleep(0.001)
        except BaseException:
            # If this party has not been let through, it does not complete its wait, and the other parties would wait in
            # vain. In this case this party breaks the barrier.
            if places and self._words[PLACES + places[0]] == WAITS and (self._lock.held_here() or self._lock.acquire(timeout=PATIENCE)):
                self._give_up(places[0])
            raise
        finally:
            if self._lock.held_here():
                self._lock.release()
            if places:
                self._leave(places[0])

    def _acquire(self, deadline):
        if not self._lock.acquire(timeout=None if deadline is None else max(deadline - time.monotonic(), 0.001)):
            raise BrokenBarrierError

    def _arrive(self, places):
        """Returns the index of the new party, and appends its place to `places`. Returns None if there is no free place yet. The
        caller holds the lock of the barrier."""
        self._look()
        if self.broken:
            raise BrokenBarrierError
        self._take_place(places)
        if not places:
            return None
        index = len(self._waiting())
        self._words[PLACES + places[0]] = WAITS
        if index + 1 == self.parties:
            if self._action is not None:
                self._action()  # if the action raises, wait() breaks the barrier
            self._let_through()
        return index

    def _sleep(self, place, index, deadline):
        words = self._words
        while True:
            seen = words[SERIAL]
            state = words[PLACES + place]
            if state == THROUGH:
                return index
            if state == BROKEN:
                raise BrokenBarrierError
            left = SLICE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                if not self._lock.acquire(timeout=PATIENCE):
                    raise BrokenBarrierError
                self._give_up(place)
                self._lock.release()
                continue
            futex_wait(self._segment.address_of(SERIAL), seen, min(left, SLICE))
            if words[PLACES + place] == WAITS and self._lock.acquire(False):
                self._look()
                self._lock.release()

    def reset(self):
        """Makes the barrier usable again. Parties that wait now get BrokenBarrierError."""
        with self._lock:
            self._look()
            self._words[STATE] = WELL
            self._end_all(BROKEN)

    def abort(self):
        """Breaks the barrier. It stays broken until reset()."""
        with self._lock:
            self._look()
            self._break()
