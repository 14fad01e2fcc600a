"""A barrier that breaks, rather than waits for ever, when a process that waits in it is killed.

Each who waits has a place: a word with its state, and a lock of the kernel on a byte, which says that it lives. All changes of
words are made under one lock. So each who waits reads in its own place how its wait ended: a reset, an abort or a time-out
that comes later changes nothing for those that were let through before."""
import ctypes
import time
import weakref
from threading import BrokenBarrierError

from ._kernel import F_OFD_SETLK, F_UNLCK, F_WRLCK, PAGE, Segment, fcntl, futex_wait, futex_wake
from ._locks import LOCK_WORDS, MASK, SLICE, Lock

PARTIES, STATE, LETTING, SERIAL = range(LOCK_WORDS, LOCK_WORDS + 4)
PLACES = 16  # the first word of the places
MOST_PARTIES = 400
FREE, WAITS, THROUGH, BROKEN = range(4)  # a place
WELL, IS_BROKEN = 0, 1                    # the barrier
ALL = 0x7fffffff
# How long one who gives up waits for the lock, s. Its holder may be stopped. Without the lock he leaves his place, and the others
# take him for dead, which breaks the barrier, too.
PATIENCE = 1.0


class Barrier:
    """As multiprocessing.Barrier: wait(), reset(), abort(), parties, n_waiting, broken. A process that is killed while it waits
    breaks the barrier for the others."""

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
        """In a forked child: the places are those of threads of the parent."""
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

    # Under the lock.

    def _places(self):
        # Twice as many as parties: those that were let through need theirs until they have read it.
        return range(2 * self.parties)

    def _waiting(self):
        return [place for place in self._places() if self._words[PLACES + place] == WAITS]

    def _end_all(self, state):
        """Tells all who wait how their wait ends."""
        for place in self._waiting():
            self._words[PLACES + place] = state
        self._words[SERIAL] = (self._words[SERIAL] + 1) & MASK
        futex_wake(self._segment.address_of(SERIAL), ALL)

    def _break(self):
        self._words[STATE] = IS_BROKEN
        self._end_all(BROKEN)

    def _give_up(self, place):
        """Breaks the barrier, if who has this place was not let through."""
        if self._words[PLACES + place] == WAITS:
            self._words[PLACES + place] = BROKEN
            self._break()

    def _let_through(self):
        # If we are killed among the places, the next who has the lock goes on with the rest.
        self._words[LETTING] = 1
        self._end_all(THROUGH)
        self._words[LETTING] = 0

    def _look(self):
        """Ends what a dead process has begun, and looks for dead processes among those who wait."""
        if self._words[LETTING]:
            self._let_through()
        for place in self._waiting():
            if place not in self._mine and not self._segment.is_locked_elsewhere(self._life(place)):
                self._words[PLACES + place] = FREE
                self._break()

    def _life(self, place):
        """The byte whose lock says that the one in this place lives."""
        return 1 + place

    def _take_place(self, places):
        """None is free as long as all are of somebody who has not yet read how his wait ended."""
        for place in self._places():
            if place in self._mine or self._words[PLACES + place] == WAITS:
                continue
            life = self._segment.byte_lock(self._life(place), F_WRLCK)
            if fcntl(self._segment.descriptor, F_OFD_SETLK, ctypes.byref(life)) == 0:
                places.append(place)
                self._mine.add(place)
                return

    # Without the lock.

    def _leave(self, place):
        """The word stays as it is: who takes the place, under the lock, changes it."""
        life = self._segment.byte_lock(self._life(place), F_UNLCK)
        fcntl(self._segment.descriptor, F_OFD_SETLK, ctypes.byref(life))
        self._mine.discard(place)

    def wait(self, timeout=None):
        """An index from 0 to parties - 1, another for each party. BrokenBarrierError if the barrier is or gets broken, or if not
        all have come after `timeout` seconds; that breaks it for the others."""
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
            # Those who wait would wait for one that does not come. Who was let through leaves them alone.
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
        """The index of the new party, whose place is put into `places`; None if there is no free place yet. Under the lock."""
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
                self._action()  # if it raises, wait() breaks the barrier
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
        """Breaks the wait of those who wait now; the barrier itself is as new."""
        with self._lock:
            self._look()
            self._words[STATE] = WELL
            self._end_all(BROKEN)

    def abort(self):
        """Breaks the barrier, until reset()."""
        with self._lock:
            self._look()
            self._break()
