"""Lock, Event and Value for processes that may be killed.

Each Lock uses a lock of the kernel on one byte of a memfd. The kernel releases that lock when its holder ends. Some
words in the first page of the memfd tell a waiter when to try again. They are only hints, because a process may die
between two writes to them. A wrong hint delays a waiter by SLICE at most."""
import collections
import ctypes
import functools
import operator
import os
import threading
import time
import weakref
from multiprocessing.sharedctypes import typecode_to_type

from ._kernel import (F_OFD_SETLK, F_UNLCK, F_WRLCK, PAGE, Segment, check_lock_errno, fcntl, futex_add_one_and_wake, futex_wait,
                      futex_wake)

SLICE = 0.04  # seconds that a waiter sleeps at most before it tries again
MASK = 0xffffffff
# The words of a lock. SERIAL grows with each release, and waiters sleep on it. WAITING is 1 if somebody may sleep.
# OWNER is the process id of the holder. A release sets OWNER to 0. If the holder dies, OWNER keeps the holder's id.
SERIAL, WAITING, OWNER = range(3)
LOCK_WORDS = 4

_call = operator.methodcaller("__call__")


def in_one_step(*calls):
    """Calls C functions one after the other. No Python handler of a signal runs between them."""
    collections.deque(map(_call, calls), 0)


class Lock:
    """A lock that one thread of one process can hold at a time. Any thread of that process may release it. If the
    process ends while it holds the lock, the next process can acquire the lock. That next process finds the id of the
    ended process in `abandoned`."""

    def __init__(self):
        self._begin(Segment(PAGE, "forksight-lock"), 0, 0)

    def _begin(self, segment, byte, word):
        self._segment, self._byte, self._word = segment, byte, word
        # fcntl() gets the addresses of these two structures, so they are never replaced and never changed.
        self._lock, self._unlock = segment.byte_lock(byte, F_WRLCK), segment.byte_lock(byte, F_UNLCK)
        segment.users.append(weakref.ref(self))
        self.renew()

    def renew(self):
        """Notes that this process does not hold the lock. Called for a new object, and in a forked child, which does
        not hold the locks of its parent."""
        self._threads = threading.Lock()  # excludes the other threads: the kernel's lock belongs to the whole process
        self._held = []                   # results of fcntl(); the last one is 0 while this process holds the kernel's lock
        descriptor, put = self._segment.descriptor, self._segment.words.__setitem__
        self._try = functools.partial(fcntl, descriptor, F_OFD_SETLK, ctypes.byref(self._lock))
        self._calm = functools.partial(put, self._word + WAITING, 0)
        self._end = functools.partial(fcntl, descriptor, F_OFD_SETLK, ctypes.byref(self._unlock))
        self.abandoned = self.thread = None

    @classmethod
    def of(cls, segment, byte=0, word=0):
        made = cls.__new__(cls)
        made._begin(segment, byte, word)
        return made

    def __reduce__(self):
        return Lock.of, (self._segment, self._byte, self._word)

    def __repr__(self):
        owner = self.owner
        return f"<forksight.queue.Lock {'held by process ' + str(owner) if owner else 'free or abandoned'}>"

    @property
    def held(self):
        """True if this process holds the lock."""
        return self._held[-1:] == [0]

    @property
    def owner(self):
        """The id of the process that holds the lock, or None. The holder has written that id itself."""
        if self.held:
            return os.getpid()
        owner = self._segment.words[self._word + OWNER]
        return owner if owner and self._segment.is_locked_elsewhere(self._byte) else None

    def acquire(self, block=True, timeout=None):
        """Acquires the lock and returns True. Returns False if the lock was not free at once (`block` is false) or within
        `timeout` seconds. If it returns True and `abandoned` is not None, the process with that id ended while it held the lock.
        A change of the data that the lock protects may then be incomplete. If acquire() raises, this thread does not hold the
        lock."""
        deadline = None if timeout is None else time.monotonic() + max(timeout, 0)
        mine, previous = [], None
        try:
            most = -1 if not block or timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)
            mine.extend(map(self._threads.acquire, (block,), (most,)))
            if not mine[0] or not self._acquire_kernels(block, deadline):
                if mine[0]:
                    mine.extend(map(_call, (self._threads.release,)))
                return False
            words, at = self._segment.words, self._word
            previous = words[at + OWNER]
            words[at + OWNER] = os.getpid()
            self.abandoned, self.thread = previous or None, threading.get_ident()
            return True
        except BaseException:
            if mine == [True]:
                if self.held:
                    self._let_go(previous)
                else:
                    self._threads.release()
            raise

    def _acquire_kernels(self, block, deadline):
        segment, words, at, slept = self._segment, self._segment.words, self._word, False
        is_second = False
        while True:
            seen = words[at + SERIAL]
            if is_second:
                words[at + WAITING] = 1  # set before the attempt, so that a release after the attempt sees the 1
            self._held.extend(map(_call, (self._try,)))
            if self._held[-1] == 0:
                if slept:
                    words[at + WAITING] = 1  # other waiters may still sleep
                return True
            self._held.clear()
            check_lock_errno()
            left = SLICE if deadline is None else deadline - time.monotonic()
            if not block or left <= 0:
                return False
            if is_second:
                futex_wait(segment.address_of(at + SERIAL), seen, min(left, SLICE))
                slept = True
            is_second = True

    def _let_go(self, owner=0):
        """Releases the lock, and stores `owner` in the word OWNER. None leaves that word as it is."""
        segment, words, at = self._segment, self._segment.words, self._word
        put, asleep = words.__setitem__, words[at + WAITING]
        if owner is None:
            owner = words[at + OWNER]
        # The order matters. A waiter reads SERIAL before it sets WAITING to 1. If that 1 is cleared here, SERIAL
        # changes after the waiter has read SERIAL, so the waiter's futex_wait() returns at once.
        in_one_step(functools.partial(put, at + OWNER, owner), self._calm, functools.partial(put, at + SERIAL, (words[at + SERIAL] + 1) & MASK),
                    self._end, self._held.clear, self._threads.release)
        if asleep or words[at + WAITING]:
            futex_wake(segment.address_of(at + SERIAL), 1)

    def release(self):
        if not self.held:
            raise ValueError("release() of a lock that this process does not hold")
        self._let_go()

    def held_here(self):
        """True if this thread was the last to acquire the lock, and no thread has released the lock since."""
        return self.thread == threading.get_ident() and self.held

    def __enter__(self):
        try:
            self.acquire()
            return self
        except BaseException:
            # A handler of a signal may have raised after acquire(). __exit__() is not called then.
            if self.held_here():
                self.release()
            raise

    def __exit__(self, *_):
        try:
            self.release()
        except BaseException:
            if self.held_here():
                self.release()
            raise


FLAG = LOCK_WORDS
COUNT = LOCK_WORDS + 1  # grows with each set(), so a waiter notices a set() even if clear() followed it


class Event:
    """Has the methods of multiprocessing.Event. It uses no lock, because a process may be killed at any instant, and a handler of
    a signal may call set() at any instant."""

    def __init__(self):
        self._segment = Segment(PAGE, "forksight-event")

    @classmethod
    def of(cls, segment):
        made = cls.__new__(cls)
        made._segment = segment
        return made

    def __reduce__(self):
        return Event.of, (self._segment,)

    def is_set(self):
        return self._segment.words[FLAG] != 0

    def set(self):
        """Wakes all waiters, even if clear() follows at once."""
        self._segment.words[FLAG] = 1
        # After the flag is set, one atomic step increments the count. A waiter reads the count before the flag, so it misses no set().
        futex_add_one_and_wake(self._segment.address_of(COUNT))

    def clear(self):
        self._segment.words[FLAG] = 0

    def wait(self, timeout=None):
        """Returns True if the event is set, or was set at any instant of the wait. Returns False after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        words = self._segment.words
        first = words[COUNT]
        while True:
            if words[FLAG] or words[COUNT] != first:
                return True
            left = SLICE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return False
            futex_wait(self._segment.address_of(COUNT), first, min(left, SLICE))


class Value:
    """A ctypes object in shared memory with a Lock, as multiprocessing.Value. `value` acquires the lock for each read
    and each write. If the new value depends on the old value, put `with value.get_lock():` around the read and the
    write. If a process ended while it held the lock, get_lock().abandoned is not None after get_lock().acquire()."""

    def __init__(self, typecode_or_type, *args, lock=True):
        kind = typecode_to_type.get(typecode_or_type, typecode_or_type)
        self._begin(kind, Segment(PAGE + max(ctypes.sizeof(kind), 1), "forksight-value"), lock)
        self._object.__init__(*args)

    def _begin(self, kind, segment, lock):
        if PAGE + ctypes.sizeof(kind) > segment.size:
            raise ValueError(f"{kind.__name__} does not fit into a shared object of {segment.size - PAGE} bytes")
        self._kind, self._segment = kind, segment
        self._own_lock = lock is True
        self._lock = Lock.of(segment) if lock is True else lock or None
        self._object = kind.from_address(segment.address + PAGE)
        self._object._forksight_segment = segment  # so the object keeps its memory when this Value is gone

    @classmethod
    def of(cls, kind, segment, lock):
        made = cls.__new__(cls)
        made._begin(kind, segment, lock)
        return made

    def __reduce__(self):
        return Value.of, (self._kind, self._segment, self._own_lock or self._lock)

    def get_lock(self):
        if self._lock is None:
            raise AttributeError("this Value was made with lock=False")
        return self._lock

    def get_obj(self):
        return self._object

    def __enter__(self):
        return self.get_lock().__enter__()

    def __exit__(self, *about):
        return self.get_lock().__exit__(*about)

    @property
    def value(self):
        if self._lock is None or self._lock.held_here():
            return self._object.value
        with self._lock:
            return self._object.value

    @value.setter
    def value(self, new):
        if self._lock is None or self._lock.held_here():
            self._object.value = new
            return
        with self._lock:
            self._object.value = new
