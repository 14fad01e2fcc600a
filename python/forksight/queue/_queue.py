"""The class Queue, whose methods are close to those of multiprocessing.Queue. A signal or a fork that interrupts a call does not
damage a queue.

A signal handler may raise an exception between any two instructions of Python, but not inside a call of a C function.
So one piece of C code must do two steps: take or give away a buffer or a message, and record that it did so. This file
has two ways to achieve this. Either the C function itself stores a pointer, or list.extend() over map() calls the C
function and stores its result. In both ways, no instruction of Python lies between the two steps."""
import collections
import ctypes
import functools
import operator
import os
import re
import sys
import threading
import time
from multiprocessing import context, reduction

from . import _items, _kernel, _memory
from ._errors import Closed, Empty, Error, Full, TooLarge, make_error
from ._native import OK, TIMEOUT, ErrorText, Expected, Options, byref, c_void_p
from ._native import library as native

# How many milliseconds one call of the C library waits at most. Between two calls, Python runs the handlers of the signals that
# have arrived.
SLICE_MS = 40
_FULL = {"block": 0, "fail": 1, "drop_oldest": 2}
_ROLES = {"any": 0, "producer": 1, "consumer": 2}


def _number(numbers, name, word):
    if word not in numbers:
        raise ValueError(f"{name}={word!r}: it can be " + ", ".join(map(repr, numbers)))
    return numbers[word]


def _count(value, name):
    if not 0 <= value <= 4096:
        raise ValueError(f"{name}={value!r}: it can be 0 to 4096")
    return value


def _milliseconds(seconds):
    if not 0 <= seconds <= 2147483:
        raise ValueError(f"grace={seconds!r}: it can be 0 to 2147483 seconds")
    return round(seconds * 1000)


# A finalizer that calls the object's `finish`. It runs no instruction of Python. So no signal handler can raise before `finish` runs.
_finalizer = property(operator.attrgetter("finish"))


class _Cell:
    """A pointer of the C library. It is given back exactly once: by a call of `finish`, or at the end of this object."""

    __slots__ = ("out", "once", "finish")
    __del__ = _finalizer

    def __init__(self, give_back):
        self.out = c_void_p()  # the C library accepts NULL, too
        self.once = [None, self.out]  # the call that pops the pointer gives it back
        self.finish = functools.partial(collections.deque, map(give_back, iter(self.once.pop, None)), 0)


class _Handle:
    """A handle of the C library. It is closed when nothing refers to it any more. A call that waits refers to it, so the handle is
    never closed during such a call."""

    __slots__ = ("pointer", "pid", "array_type", "finish", "reader")
    __del__ = _finalizer

    def __init__(self, open_):
        """open_(pointer, error): a C function that makes a handle."""
        self.pointer, self.pid, self.reader = c_void_p(), os.getpid(), None
        self.finish = functools.partial(native.queue_close, self.pointer)
        told = ErrorText()
        code = open_(byref(self.pointer), byref(told))
        if code != OK:
            raise make_error(code, told)
        self.array_type = ctypes.c_ubyte * native.queue_buffer_bytes(self.pointer)


class _Message:
    """A received message, or an empty place for one. The message is released when nothing refers to this object any more."""

    __slots__ = ("cell", "handle", "is_read")

    def __init__(self, handle):
        self.cell, self.handle, self.is_read = _Cell(native.message_release), handle, False

    def view(self):
        pointer = self.cell.out
        return _memory.view_of(native.message_data(pointer), native.message_size(pointer), self, self.handle.array_type)


class _ParkedMessage(_Message):
    """A message of get_parked(), or an empty place for one. At the end of this object the last function in `ends` gets
    the message. At first this function is _park_again()."""

    __slots__ = ("ends",)

    def __init__(self, handle):
        ends = self.ends = [_park_again]
        super().__init__(handle)
        self.cell = _Cell(lambda pointer: ends[-1](pointer))


def _park_again(pointer):
    if pointer.value and native.message_park(pointer, None) != OK:
        native.message_release(pointer)  # the message belongs to another process by now, so this only frees the object


class Loan:
    """A free buffer of the queue, to write an item into. If the loan is not sent, the buffer goes back to the queue at the end of
    the `with` block, by give_back(), or at the end of this object. After send() the memory belongs to the receiver. Do not write
    into arrays of the loan after that."""

    def __init__(self, queue, handle):
        self._queue, self._handle = queue, handle
        self._cell = _Cell(native.loan_give_back)
        self._array = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.give_back()

    def _memory(self):
        if len(self._cell.once) < 2 or not self._cell.out.value:
            raise ValueError("the loan was already sent or given back: loan() returns a new one")
        return _memory.view_of(native.loan_data(self._cell.out), self._handle.array_type._length_, self._handle, self._handle.array_type)

    @property
    def data(self):
        """All bytes of the buffer, as a memoryview. send(size) sends the first `size` of them."""
        return self._memory()

    def array(self, shape, dtype):
        """Returns a numpy array that lies in the buffer. send() without a size sends this array. Raises TooLarge if the
        array does not fit into the buffer."""
        import numpy
        dtype = numpy.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if dtype.hasobject:
            raise TypeError("an array of objects cannot be shared")
        memory, size = self._memory(), dtype.itemsize
        for length in shape:
            size *= length
        if _items.FIRST + size > memory.nbytes - _items.OVERHEAD // 2:
            raise TooLarge(f"the array has {size} bytes, but a buffer of this queue has room for only {self._queue.item_bytes}")
        array = numpy.frombuffer(memory[_items.FIRST:_items.FIRST + size], dtype).reshape(shape) if size else numpy.empty(shape, dtype)
        self._array = (array, size)
        return array

    def send(self, size=None, timeout=None):
        """Sends the array that array() has made. With `size`, it sends the first `size` bytes of `data`, which the receiver gets as
        a memoryview. It raises queue.Full if there is no room after `timeout` seconds. The loan can still be sent then."""
        memory = self._memory()
        if size is None:
            if self._array is None:
                raise ValueError("send() needs a size, because array() was not called on this loan")
            array, nbytes = self._array
            # The array lies in the buffer already. Usually the pickle only refers to it, so only the table and the pickle are
            # written. If the array is pickled in another way, the whole item is written.
            item = _items.Item(array)
            if item.buffers and item.buffers[0].nbytes == nbytes:
                size = _items.write_table(memory, item.places, item.table, item.pickle)
            else:
                size = item.write(memory)
        elif not 0 <= size <= memory.nbytes:
            raise ValueError(f"size={size}: it can be 0 to {memory.nbytes}, the bytes of the buffer")
        del memory
        self._queue._send(self._handle, self._cell, size, _deadline(timeout), None)

    def give_back(self):
        self._cell.finish()


def _deadline(timeout):
    return None if timeout is None else time.monotonic() + max(timeout, 0)


class _Patience:
    """Divides a wait until a deadline into slices. A deadline of None means a wait without end."""

    __slots__ = ("deadline", "ms", "began", "started")

    def __init__(self, deadline):
        self.deadline, self.began = deadline, time.monotonic()

    def next(self):
        """Returns how many milliseconds the next call may wait. That is 0 if the deadline has passed."""
        self.started = time.monotonic()
        left = SLICE_MS if self.deadline is None else (self.deadline - self.started) * 1000
        self.ms = 0 if left <= 0 else min(SLICE_MS, int(min(left, SLICE_MS)) + 1)
        return self.ms

    def is_over(self):
        """Called after a call of the C library that found nothing. Returns True if the wait is over. It is over at the deadline. It
        is also over if the call returned within half of its slice. Such a call did not wait, because the queue has full="fail"."""
        now = time.monotonic()
        return self.ms == 0 or now - self.started < self.ms / 2000 or self.deadline is not None and now >= self.deadline

    def tell(self, text):
        """Returns the error text of the last slice, with the time of the whole wait in place of the time of the slice."""
        return re.sub(r" after [\d.]+ s:", f" after {time.monotonic() - self.began:.1f} s:", text, count=1)


class Queue:
    """A queue of Python objects in shared memory, for processes of one host.

    `maxsize` is how many items can be in the queue. 0 or less means 64. `buffers` is how many buffers there are. Each
    queued item, each item that a receiver still views, and each loan occupies a buffer. The default is `maxsize`.
    `item_bytes` is how many bytes the pickle and the arrays of one item can have together. The memory of all buffers is
    reserved at once. With `name=True` the queue has a random name, by which Queue.attach() finds it. With `name="jobs"`
    the queue has the name "jobs". If a queue with this name exists, it is opened, and its options must be the same.
    With `name=False` the queue is a memfd, and has no name. With `redeliver=True` an item whose receiver died goes to
    another receiver, at most `max_redeliver` times; 0 means 3. `full` is what put() does if there is no room: "block",
    "fail" or "drop_oldest". With `keep_open=False`, get() raises Closed or ProducerDied if the last producer has gone,
    and put() raises NoConsumer if the last consumer has gone. With `keep_open=True`, the handle that made the queue
    counts as a producer and as a consumer. So get() and put() wait for other processes as long as this handle lives.
    If `expected_producers`, `expected_consumers` or `grace` is given, the default is False. Otherwise it is True.
    `expected_producers` is how many handles will send in all, and `expected_consumers` is how many will receive in all.
    Closed, ProducerDied and NoConsumer are raised only after so many handles have ended, or after shutdown(), or if the
    process that made the queue has died while its handle was neither a producer nor a consumer. When the last producer
    has ended, receivers wait `grace` seconds for another one. Senders wait for another consumer in the same way."""

    def __init__(self, maxsize=64, *, item_bytes=64 * 1024, buffers=None, name=False, redeliver=False, max_redeliver=0, full="block",
                 keep_open=None, max_participants=128, spin_us=0, unlink_at=0, expected_producers=0, expected_consumers=0, grace=0):
        maxsize = maxsize if maxsize > 0 else 64
        # `max_participants` is how many handles can be attached at the same time. The C library's own default is 16.
        options = Options(slots=max(2, maxsize), buffers=maxsize if buffers is None else buffers, buffer_bytes=item_bytes + _items.OVERHEAD,
                          named=bool(name), redeliver=bool(redeliver), full=_number(_FULL, "full", full), max_redeliver=max_redeliver,
                          max_participants=max_participants, spin_us=spin_us, unlink_at=unlink_at)
        expected = Expected(_count(expected_producers, "expected_producers"), _count(expected_consumers, "expected_consumers"),
                            _milliseconds(grace))
        if keep_open is None:
            keep_open = not (expected_producers or expected_consumers or grace)
        if isinstance(name, str):
            chosen = name.encode()
            if b"\0" in chosen:
                raise ValueError(f"name={name!r}: it contains a zero byte")
            self._begin(_Handle(lambda out, told: native.queue_open_or_create_expecting(chosen, byref(options), byref(expected), 0, out, told)), "any")
        else:
            self._begin(_Handle(lambda out, told: native.queue_create_expecting(byref(options), byref(expected), out, told)), "any")
        if keep_open:
            # The handle takes both roles now. Usually a handle takes a role by its first call that sends or receives. This handle
            # must not call receive for that, because it could get a message that is meant for another process.
            told = ErrorText()
            for role in ("producer", "consumer"):
                code = native.queue_take_role(self._handle.pointer, _ROLES[role], byref(told))
                if code != OK:
                    raise make_error(code, told)

    def _begin(self, handle, role):
        self._handle, self._role = handle, role
        self._parked = collections.deque()  # messages that were received, but that no call of get() or aget() has returned

    @classmethod
    def attach(cls, where, role="any"):
        """Returns a handle of an existing queue. `where` is the name of the queue or a descriptor of its memory. The caller still
        has to close that descriptor. `role` is "any", "producer" or "consumer"."""
        made, number = cls.__new__(cls), _number(_ROLES, "role", role)
        if isinstance(where, str):
            made._begin(_Handle(lambda out, told: native.queue_attach_named(where.encode(), number, out, told)), role)
        else:
            made._begin(_Handle(lambda out, told: native.queue_attach(where, number, out, told)), role)
        return made

    def _use(self):
        """Returns the C library's handle of this process. A forked child gets a handle of its own. The messages that the parent has
        received stay with the parent."""
        handle = self._handle
        if handle is None:
            raise Closed("this queue handle is closed")
        if handle.pid != os.getpid():
            parents = handle
            handle = _Handle(lambda out, told: native.queue_reattach_after_fork(parents.pointer, out, told))
            self._parked = collections.deque()
            self._handle = handle
        return handle

    # Passing the queue to other processes.

    def fileno(self):
        """The descriptor of the queue's memory. subprocess.Popen(pass_fds=[queue.fileno()]) passes it to another program."""
        return native.queue_fd(self._use().pointer)

    @property
    def reader(self):
        """An object for event loops. Its fileno() is readable while get(False) would return an item or raise anything but queue.Empty."""
        return _Event(self, native.queue_message_fd)

    @property
    def writer(self):
        """An object for event loops. Its fileno() is readable while loan(False) would return a loan or raise anything but queue.Full."""
        return _Event(self, native.queue_room_fd)

    @property
    def name(self):
        """The name of a named queue, or None."""
        told = ctypes.create_string_buffer(128)
        return told.value.decode() if native.queue_name(self._use().pointer, told, len(told)) else None

    @property
    def item_bytes(self):
        return native.queue_buffer_bytes(self._use().pointer) - _items.OVERHEAD

    def __reduce__(self):
        name = self.name
        if name:
            about = os.fstat(self.fileno())
            return _attach_named, (name, about.st_dev, about.st_ino, self._role)
        descriptor = self.fileno()
        if context.get_spawning_popen() is not None:
            return _attach_inherited, (reduction.DupFd(descriptor), self._role)
        about = os.fstat(descriptor)
        return _attach_foreign, (os.getpid(), descriptor, about.st_dev, about.st_ino, self._role)

    # Sending.

    def put(self, obj, block=True, timeout=None):
        """Sends an object. Raises queue.Full if there is no room. It raises that at once if `block` is false, else after `timeout`
        seconds."""
        self._put(_items.Item(obj), _deadline(timeout if block else 0), None, None)

    def put_nowait(self, obj):
        self.put(obj, False)

    def put_bytes(self, data, block=True, timeout=None):
        """Sends bytes without a frame, for a receiver in another language. get() returns them as a memoryview."""
        self._put(_Bytes(data), _deadline(timeout if block else 0), None, None)

    def loan(self, block=True, timeout=None):
        """Returns a Loan: a free buffer, to write an item in place."""
        return self._borrow(self._use(), _deadline(timeout if block else 0), None)

    def _borrow(self, handle, deadline, wait):
        loan, told, patience = Loan(self, handle), ErrorText(), _Patience(deadline)
        while True:
            code = native.queue_acquire(handle.pointer, patience.next(), byref(loan._cell.out), byref(told))
            if code == OK:
                return loan
            self._check(code, told, patience, handle, wait, Full)

    def _put(self, item, deadline, wait, _):
        handle = self._use()
        capacity = handle.array_type._length_
        if item.size > capacity:
            raise TooLarge(f"the item has {item.size} bytes, but a buffer of this queue has only {capacity}: make the queue with item_bytes={item.size}")
        loan = self._borrow(handle, deadline, wait)
        try:
            self._send(handle, loan._cell, item.write(loan._memory()), deadline, wait)
        finally:
            loan.give_back()

    def _send(self, handle, cell, size, deadline, wait):
        if handle.pid != os.getpid():
            raise Error("the loan belongs to the parent process: a forked child cannot send it")
        told, patience, pointer, codes = ErrorText(), _Patience(deadline), [], []
        try:
            if len(cell.once) < 2 or not cell.out.value:
                raise ValueError("the loan was already sent or given back: loan() returns a new one")
            pointer.extend(map(list.pop, (cell.once,)))
            while True:
                codes.extend(map(native.queue_send, (handle.pointer,), pointer, (size,), (patience.next(),), (byref(told),)))
                if codes[-1] == OK:
                    return
                self._check(codes[-1], told, patience, handle, wait, Full)
        finally:
            if OK not in codes:
                cell.once.extend(pointer)  # the loan was not sent, so the caller has it again

    # Receiving.

    def get(self, block=True, timeout=None, copy=False):
        """Returns the next object. Raises queue.Empty if there is none. It raises that at once if `block` is false, else after
        `timeout` seconds. Large arrays in the object are views of the message, which holds its buffer until these arrays are gone.
        With `copy` they are copies."""
        handle = self._use()
        places = [_Message(handle)]
        try:
            self._receive(handle, _deadline(timeout if block else 0), None, places)
            return self._read(places[-1], copy)
        except BaseException as error:
            self._park(places, error)
            raise

    @staticmethod
    def _read(message, copy):
        message.is_read = True
        return _items.read(message.view(), copy)

    def _park(self, places, error):
        """Called when an exception ends a call, for example an exception of a signal handler, or a cancellation. Keeps a received
        message for the next call. A message whose object cannot be unpickled is not kept."""
        for message in places:
            if message.cell.out.value and not (message.is_read and isinstance(error, Exception)):
                self._parked.appendleft(message)
                self._tell_reader(message.handle)

    def get_nowait(self):
        return self.get(False)

    @staticmethod
    def _tell_reader(handle):
        """Makes the descriptor of the property `reader` readable, if the program has asked for that descriptor. The C
        library does not do that for a parked message, because the message is not in its queue. The next get() that
        finds nothing makes the descriptor unreadable."""
        if handle.reader is not None:
            os.write(handle.reader, (1).to_bytes(8, sys.byteorder))

    def _receive(self, handle, deadline, wait, places):
        """Receives a message into places[0]. If a message is parked, it appends that message to `places` instead."""
        told, patience = ErrorText(), _Patience(deadline)
        while True:
            if self._parked:
                try:
                    places.extend(map(collections.deque.popleft, (self._parked,)))
                    return
                except IndexError:
                    continue
            code = native.queue_receive(handle.pointer, patience.next(), byref(places[0].cell.out), byref(told))
            if code == OK:
                return
            self._check(code, told, patience, handle, wait, Empty)

    def _check(self, code, told, patience, handle, wait, nothing):
        """Handles the result of a call of the C library that did not succeed. Returns if the caller must make the call again.
        Otherwise raises an exception."""
        if wait is not None and wait.is_over:
            raise _Abandoned
        if self._handle is not handle and handle.pid == os.getpid():
            raise Closed("this queue handle was closed during the call")
        if code != TIMEOUT:
            raise make_error(code, told)
        if patience.is_over():
            raise nothing(patience.tell(told.text.decode(errors="replace")))

    # Parked messages: those whose receivers were killed too often (`max_redeliver`).

    def get_parked(self, copy=False):
        """Returns the object of the oldest parked message. Raises queue.Empty if no message is parked. The buffer of
        the message is free when the object's views of it are gone. If the process ends before that, or the object
        cannot be unpickled, the message is parked again."""
        handle = self._use()
        message, told = _ParkedMessage(handle), ErrorText()
        code = native.queue_receive_parked(handle.pointer, byref(message.cell.out), byref(told))
        if code == TIMEOUT:
            raise Empty(told.text.decode(errors="replace"))
        if code != OK:
            raise make_error(code, told)
        item = self._read(message, copy)
        message.ends.append(native.message_release)
        return item

    def requeue_parked(self):
        """Lets receivers get all parked messages again. Returns how many there were."""
        count, told = ctypes.c_size_t(), ErrorText()
        code = native.queue_requeue(self._use().pointer, byref(count), byref(told))
        if code != OK:
            raise make_error(code, told)
        return count.value

    # asyncio.

    async def aget(self, timeout=None, copy=False):
        """Does what get() does, in a coroutine. If the coroutine is cancelled after it has received a message, the next
        call returns that message."""
        handle, deadline = self._use(), _deadline(timeout)
        places = [_Message(handle)]
        try:
            try:
                self._receive(handle, 0, None, places)
            except Empty:
                await _Wait(self).run(self._receive, handle, deadline, places)
            return self._read(places[-1], copy)
        except BaseException as error:
            self._park(places, error)
            raise

    async def aput(self, obj, timeout=None):
        """Does what put() does, in a coroutine. If the coroutine is cancelled, the item may have been sent nevertheless."""
        item, deadline = _items.Item(obj), _deadline(timeout)
        try:
            self._put(item, 0, None, None)
        except Full:
            await _Wait(self).run(self._put, item, deadline, None)

    # Ending the queue.

    def close_producer(self):
        """Declares that this handle sends no more items. After the last producer has closed, get() returns the items that are
        still queued, and then raises Closed."""
        told = ErrorText()
        code = native.queue_close_producer(self._use().pointer, -1, None, byref(told))
        if code != OK:
            raise make_error(code, told)

    def shutdown(self, drain=True):
        """Ends the queue for all processes. Nothing can be sent any more. What is queued can still be received if `drain` is
        true."""
        native.queue_shutdown(self._use().pointer, bool(drain))

    def close(self):
        """Ends this handle. Calls of other threads that wait on it raise Closed. Views of messages stay valid."""
        handle, self._handle = self._handle, None
        if handle is None or handle.pid != os.getpid():
            return
        native.queue_close_producer(handle.pointer, 0, None, None)
        native.queue_cancel(handle.pointer)
        self._parked.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def join_thread(self):
        """Does nothing, because there is no thread to join. Programs that were written for multiprocessing.Queue may call it."""

    def cancel_join_thread(self):
        """Does nothing, because there is no thread to join. Programs that were written for multiprocessing.Queue may call it."""


class _Event:
    """An object with a fileno(). Each process gets a descriptor of its own handle of the queue."""

    def __init__(self, queue, open_):
        self._queue, self._open = queue, open_

    def fileno(self):
        handle, number, told = self._queue._use(), ctypes.c_int(-1), ErrorText()
        code = self._open(handle.pointer, byref(number), byref(told))
        if code != OK:
            raise make_error(code, told)
        if self._open is native.queue_message_fd:
            handle.reader = number.value
        return number.value


class _Bytes:
    """Bytes that are sent as they are, without the prefix of an Item."""

    def __init__(self, data):
        self.data = memoryview(data).cast("B")
        self.size = self.data.nbytes

    def write(self, target):
        _memory.copy_into(target[:self.size], self.data)
        return self.size


class _Abandoned(BaseException):
    """Ends the thread of a coroutine that was cancelled."""


class _Wait:
    """Makes a call that waits, for a coroutine. A separate thread makes the call. The thread is a daemon, so nothing
    joins it at the end of the loop or of the process. It ends within SLICE_MS after its coroutine was cancelled."""

    def __init__(self, queue):
        self.queue, self.is_over = queue, False

    async def run(self, call, first, deadline, places):
        import asyncio
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        # The thread has places of its own, because it may go on after its coroutine has ended.
        own = places and [_Message(first)]
        threading.Thread(target=self._work, args=(loop, future, call, first, deadline, own), name="forksight-queue-wait", daemon=True).start()
        try:
            await future
        finally:
            self.is_over = True
            if own and future.done() and not future.cancelled() and future.exception() is None:
                places.extend(own)  # the caller parks the message if the coroutine was cancelled at the same time

    def _work(self, loop, future, call, first, deadline, own):
        error = None
        try:
            call(first, deadline, self, own)
        except _Abandoned:
            return
        except BaseException as raised:  # the coroutine raises it
            error = raised
        try:
            loop.call_soon_threadsafe(self._deliver, future, own, error)
        except RuntimeError:  # the loop is closed
            self._keep(own)

    def _deliver(self, future, own, error):
        if future.done():  # cancelled
            self._keep(own)
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(None)

    def _keep(self, own):
        """If the handle was not closed, parks a message that came too late for its coroutine. The next call returns
        this message."""
        for message in own or ():
            if message.cell.out.value and self.queue._handle is message.handle:
                self.queue._parked.appendleft(message)
                self.queue._tell_reader(message.handle)


def _attach_named(name, device, inode, role):
    queue = Queue.attach(name, role)
    about = os.fstat(queue.fileno())
    # If a user chose the name, another queue may have it now, because the name was removed after the pickling.
    if (about.st_dev, about.st_ino) != (device, inode):
        queue.close()
        raise Error(f"{name}: is another queue now: the name was removed and used again")
    return queue


def _attach_inherited(descriptor, role):
    number = descriptor.detach()
    try:
        return Queue.attach(number, role)
    finally:
        os.close(number)


def _attach_foreign(pid, number, device, inode, role):
    own = _kernel.open_foreign(pid, number, device, inode, "queue")
    try:
        return Queue.attach(own, role)
    finally:
        os.close(own)
