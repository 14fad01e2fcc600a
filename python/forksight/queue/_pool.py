"""A pool of worker processes that continues if a worker is killed, and reports which task that worker was running.

Each worker has two pipes: one for its tasks and one for its results. One thread of the parent, the pool's thread, serves the
pipes of all workers. It never blocks on the pipe of one worker, and no other thread reads or writes these pipes. So a worker that
is stopped in the middle of a result delays only that result."""
import collections
import functools
import itertools
import multiprocessing
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
import traceback
import weakref
from concurrent.futures import CancelledError
from multiprocessing import util
from multiprocessing.connection import Connection

from ._kernel import pidfd_open, pidfd_send_signal, state_of

# Messages have the frame of multiprocessing.Connection: the length of a message comes first, as LENGTH, or as -1 and LONG_LENGTH.
LENGTH, LONG_LENGTH = struct.Struct("!i"), struct.Struct("!Q")
# How many seconds a worker has to end after close() and the last task, before it is killed. The pool's thread waits equally long
# for the end of a worker that it has killed.
GRACE = 5.0
# The pool gives up if this number of workers in succession end before they begin a task.
MOST_STILLBORN = 10
# The interval in seconds at which the pool's thread checks which workers have ended. It is used after close(), and if a worker
# has no pidfd. Otherwise the pidfd of a worker that ends wakes the pool's thread.
TICK = 0.05


class WorkerKilled(Exception):
    """The worker process `pid` ended before its task did. `signal` is the number of the signal that killed it, or None.
    `exitcode` is the exit status of the worker, or None. Both are None if other code has taken the exit status from the
    kernel. `index` is the position of the task among the tasks of its call. `function` is the name of the function."""

    def __init__(self, pid, signal_number, exitcode, index, function):
        super().__init__(pid, signal_number, exitcode, index, function)
        self.pid, self.signal, self.exitcode, self.index, self.function = pid, signal_number, exitcode, index, function

    def __str__(self):
        if self.signal is not None:
            try:
                how = f"was killed by {signal.Signals(self.signal).name}"
            except ValueError:
                how = f"was killed by signal {self.signal}"
        else:
            how = "ended" if self.exitcode is None else f"ended with exit status {self.exitcode}"
        return f"worker process {self.pid} {how} in task {self.index} of {self.function}"


class RemoteError(Exception):
    """Replaces an exception of a task if that exception cannot be pickled. If the result of a task cannot be pickled,
    the task also fails with a RemoteError. The text of a RemoteError has the class and the text of the original
    exception. The cause of a RemoteError is a RemoteTraceback."""


class RemoteTraceback(Exception):
    """The cause of an exception that a task has raised. Its text is the traceback in the worker."""

    def __str__(self):
        return "\n" + str(self.args[0])


# The worker.

def _describe(error):
    """Returns (pickled exception, traceback). If the exception cannot be pickled and unpickled, or is not an Exception
    (for example SystemExit), the caller gets the pickle of a RemoteError instead."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        if not isinstance(error, Exception):
            raise TypeError("SystemExit of a task is not the parent's")
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        data = pickle.dumps(RemoteError(f"{type(error).__name__}: {_text(error)}"))
    return data, text


def _text(error):
    try:
        return str(error)
    except Exception:
        return "its str() raises an exception, too"


def _run(function, arguments):
    """Runs one task. Returns (worked, pickled result or exception, traceback or None)."""
    try:
        value = function(*arguments)
    except BaseException as error:
        return (False, *_describe(error))
    try:
        return True, pickle.dumps(value, pickle.HIGHEST_PROTOCOL), None
    except Exception as error:
        failure = RemoteError(f"the result of a task cannot be pickled: {type(error).__name__}: {_text(error)}")
        return False, pickle.dumps(failure), traceback.format_exc()


def _work(tasks, results, initializer, initargs):
    # Ctrl-C sends SIGINT to the workers, too. Only the parent handles SIGINT: the parent ends the pool, and the pool
    # ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if initializer is not None:
        try:
            initializer(*initargs)
        except BaseException as error:
            results.send_bytes(pickle.dumps(("initializer", *_describe(error))))
            return
    try:
        while True:
            _work_on(tasks.recv_bytes(), results)
    except (EOFError, BrokenPipeError):
        pass  # the pool has closed the pipes, or its process has ended


def _work_on(data, results):
    """Runs the tasks of one chunk, and sends each result when its task ends."""
    results.send_bytes(pickle.dumps(("begin",)))
    try:
        function, chunk = pickle.loads(data)
    except BaseException as error:
        results.send_bytes(pickle.dumps(("unreadable", *_describe(error))))
        return
    for arguments in chunk:
        results.send_bytes(pickle.dumps(("done", *_run(function, arguments))))


# The parent.

class _Job:
    """The tasks of one call, `total` in number, and the outcomes of those that have ended."""

    def __init__(self, pool, function, total, callback=None, error_callback=None):
        self.pool, self.name = pool, getattr(function, "__qualname__", repr(function))
        self.function, self.total = function, total
        self.callback, self.error_callback = callback, error_callback
        self.outcomes = {}  # index: (worked, value)
        self.finished = []  # indices, in the order of their ends
        self.failure = None
        self.is_cancelled = False
        self.change = threading.Condition()

    def put(self, index, worked, value):
        with self.change:
            if index in self.outcomes or self.is_cancelled:
                return
            self._note(index, worked, value)
            is_last = self.is_complete()
            self.change.notify_all()
        if is_last:
            self.call_back()

    def _note(self, index, worked, value):
        self.outcomes[index] = (worked, value)
        self.finished.append(index)
        if not worked and self.failure is None:
            self.failure = value

    def end(self, error):
        """Makes this error the outcome of each task that has no outcome yet."""
        with self.change:
            if self.is_complete():
                return
            self.is_cancelled = isinstance(error, CancelledError)
            self.set_total()
            for index in range(self.total):
                if index not in self.outcomes:
                    self._note(index, False, error)
            self.change.notify_all()
        self.call_back()

    def set_total(self):
        """Called by end(). A subclass that does not know its number of tasks sets `total` here."""

    def is_complete(self):
        return self.total is not None and len(self.outcomes) == self.total

    def call_back(self):
        try:
            if self.failure is not None:
                if self.error_callback is not None:
                    self.error_callback(self.failure)
            elif self.callback is not None:
                self.callback(self.value())
        except Exception:
            # An exception of a callback is printed, and the pool goes on.
            sys.excepthook(*sys.exc_info())

    def wait(self, is_over, timeout):
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.change:
            while not is_over():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self.change.wait(left)
            return True

    def value(self):
        return [self.outcomes[index][1] for index in range(self.total)]


class AsyncResult:
    """The result of apply_async(), map_async() and starmap_async()."""

    def __init__(self, job):
        self._job = job

    def ready(self):
        return self._job.is_complete()

    def successful(self):
        if not self.ready():
            raise ValueError(f"{self!r} is not ready")
        return self._job.failure is None

    def wait(self, timeout=None):
        self._job.wait(self._job.is_complete, timeout)

    def get(self, timeout=None):
        """Returns the results in the order of the tasks. If a task has failed, raises the exception of the first one that failed.
        If not all tasks have ended after `timeout` seconds, raises multiprocessing.TimeoutError, whose text says which worker has
        which of the tasks that are left."""
        if not self._job.wait(self._job.is_complete, timeout):
            raise multiprocessing.TimeoutError(self._job.pool._describe(self._job))
        if self._job.failure is not None:
            raise self._job.failure
        return self._job.value()

    def cancel(self):
        """Drops the tasks that were not given to a worker yet. A worker completes the chunk of tasks that it has, and the results
        are dropped. get() then raises concurrent.futures.CancelledError, or the exception of a task that had failed before. Returns
        False if all tasks had ended already, else True."""
        if self.ready():
            return False
        self._job.end(CancelledError("cancel() was called"))
        self._job.pool._wake()
        return True


class _Single(_Job):
    def value(self):
        return self.outcomes[0][1]


class _Iterator:
    """The iterator that imap() and imap_unordered() return. If a task has failed, next() raises the exception of the
    task in place of its result. The call of next() after that returns the result of the following task."""

    def __init__(self, job, is_ordered):
        self._job, self._is_ordered, self._next = job, is_ordered, 0
        self._order = []

    def __iter__(self):
        return self

    def next(self, timeout=None):
        job = self._job
        if not job.wait(self._is_ready, timeout):
            raise multiprocessing.TimeoutError(job.pool._describe(job))
        with job.change:
            if self._next == job.total:
                raise StopIteration
            index = self._next if self._is_ordered else job.finished[self._next]
            self._next += 1
            worked, value = job.outcomes[index]
            job.outcomes[index] = (worked, None)  # so the results of an endless iterable do not pile up
        if worked:
            return value
        raise value

    __next__ = next

    def _is_ready(self):
        if self._next == self._job.total:
            return True
        return self._next in self._job.outcomes if self._is_ordered else self._next < len(self._job.finished)

    def cancel(self):
        return AsyncResult(self._job).cancel()


class _Stream(_Job):
    """The tasks of an iterator. Their number is not known before the iterator ends. A separate thread reads the
    iterator, because the iterator may block. The thread pauses while `ahead` or more of the tasks that it has read have
    not ended."""

    def __init__(self, pool, function, iterable, chunksize, ahead):
        super().__init__(pool, function, None)
        self.iterator, self.chunksize, self.ahead = iter(iterable), chunksize, ahead
        self.given = 0

    def set_total(self):
        if self.total is None:
            self.total = self.given + 1  # one more than the tasks read, so that next() raises the error even if each read task has an outcome

    def read(self):
        while True:
            try:
                taken = list(itertools.islice(self.iterator, self.chunksize))
                failure = None
            except BaseException as error:  # raised by the user's generator
                taken, failure = [], error
            with self.change:
                if self.total is not None:  # cancelled, or the pool has ended
                    return
                first = self.given
                self.given += len(taken)
                if failure is not None:
                    self._note(self.given, False, failure)
                    self.total = self.given + 1
                elif len(taken) < self.chunksize:
                    self.total = self.given
                self.change.notify_all()
            if taken:
                self.pool._waiting.append((self, first, [(argument,) for argument in taken]))
            self.pool._wake()
            with self.change:
                while self.total is None and self.given - len(self.outcomes) >= self.ahead:
                    self.change.wait()
                if self.total is not None:
                    return


class _Worker:
    """A worker process, and what the pool's thread knows of it."""

    def __init__(self, pool):
        self.task_end = self.result_end = self.pidfd = None
        pool._fresh.append(self)  # so that the child, if fork() makes it, can close the parent's ends of the pipes
        task_reader, self.task_end = os.pipe()
        self.result_end, result_writer = os.pipe()
        self.chunk = None      # the tasks that the worker has: (job, first index, tasks); or None
        self.returned = 0      # how many results of that chunk have come
        self.has_begun = False
        self.tasks_done = 0
        self.is_retiring = False
        self.is_mute = False   # the worker's end of the pipe for results is closed
        self.to_send, self.received = collections.deque(), bytearray()
        tasks, results = Connection(task_reader, writable=False), Connection(result_writer, readable=False)
        try:
            self.process = pool._context.Process(target=_work, args=(tasks, results, pool._initializer, pool._initargs), daemon=True,
                                                 name=f"ForksightWorker-{next(pool._numbers)}")
            self.process.start()
        except BaseException:
            self.close()
            raise
        finally:
            tasks.close()
            results.close()
        for number in (self.task_end, self.result_end):
            os.set_blocking(number, False)
        try:
            self.pidfd = pidfd_open(self.process.pid)
            self.is_gone = False
        except ProcessLookupError:  # the worker has ended, and other code has reaped it
            self.is_gone = True

    @property
    def pid(self):
        return self.process.pid

    def close(self):
        for name in ("task_end", "result_end", "pidfd"):
            number = getattr(self, name, None)
            if number is not None:
                setattr(self, name, None)
                os.close(number)

    def stop_sending(self):
        """If nothing is left to send, closes the pipe for tasks. The worker ends when it has done the tasks that it
        has."""
        self.is_retiring = True
        if self.task_end is not None and not self.to_send:
            number, self.task_end = self.task_end, None
            os.close(number)

    def kill(self):
        if self.is_gone:
            return
        try:
            if self.pidfd is not None:
                pidfd_send_signal(self.pidfd, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            self.is_gone = True

    def has_ended(self):
        if not self.is_gone:
            if self.pidfd is not None:
                ready = select.poll()
                ready.register(self.pidfd, select.POLLIN)
                self.is_gone = bool(ready.poll(0))
            else:
                self.is_gone = self.process.exitcode is not None or state_of(self.pid) in "?ZX"
        return self.is_gone

    def reap(self):
        """Returns the exit code as multiprocessing defines it, or None if other code has taken the exit status from the kernel."""
        code = self.process.exitcode
        if code is None and hasattr(self.process._popen, "sentinel") and self.process._popen.method == "forkserver":
            self.process.join(1.0)  # the fork server sends the exit code after it has reaped the worker
            code = self.process.exitcode
        if code is None:
            # Without an exit code multiprocessing would take the worker for alive for ever, and signal its pid at exit.
            self.process._popen.returncode = 255
        self.process.join(0)
        return code

    def send(self, data):
        header = LENGTH.pack(len(data)) if len(data) <= 0x7fffffff else LENGTH.pack(-1) + LONG_LENGTH.pack(len(data))
        self.to_send.extend((memoryview(header), memoryview(data)))

    def write(self):
        """Writes as much of `to_send` as the pipe takes."""
        try:
            while self.to_send:
                first = self.to_send[0]
                written = os.write(self.task_end, first)
                if written == len(first):
                    self.to_send.popleft()
                else:
                    self.to_send[0] = first[written:]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.to_send.clear()  # the pool learns of the worker's end by has_ended()

    def read(self, most=1 << 16):
        """Reads at most `most` bytes of results. Returns True if it has read any bytes. There may be more results
        then."""
        try:
            data = os.read(self.result_end, most)
        except BlockingIOError:
            return False
        self.received += data
        self.is_mute = not data
        return bool(data)

    def frames(self):
        """Removes each complete message from `received`, and yields it."""
        while len(self.received) >= LENGTH.size:
            start, (length,) = LENGTH.size, LENGTH.unpack_from(self.received)
            if length == -1:
                if len(self.received) < start + LONG_LENGTH.size:
                    return
                (length,), start = LONG_LENGTH.unpack_from(self.received, start), start + LONG_LENGTH.size
            if len(self.received) < start + length:
                return
            with memoryview(self.received) as all_bytes:
                frame = bytes(all_bytes[start:start + length])
            del self.received[:start + length]
            yield frame


_pools = weakref.WeakSet()


def _forget_in_child():
    for pool in list(_pools):
        pool._forget()


os.register_at_fork(after_in_child=_forget_in_child)

RUNS, CLOSES, ENDS = range(3)


class Pool:
    """A pool of worker processes with the methods of multiprocessing.Pool. If a worker is killed, its task fails with WorkerKilled.
    All other tasks go on, and a new worker replaces the killed one. `context` is a start method, or what
    multiprocessing.get_context() returns. A thread of this process starts new workers. So "forkserver" or "spawn" is safer than
    "fork" if other threads hold locks."""

    def __init__(self, processes=None, initializer=None, initargs=(), maxtasksperchild=None, context=None):
        if processes is None:
            processes = len(os.sched_getaffinity(0))
        if processes < 1:
            raise ValueError("processes must be 1 or more")
        if maxtasksperchild is not None and maxtasksperchild < 1:
            raise ValueError("maxtasksperchild must be 1 or more, or None")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._context = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
        self._initializer, self._initargs, self._most_tasks = initializer, tuple(initargs), maxtasksperchild
        self._processes, self._numbers = processes, itertools.count(1)
        self._workers, self._fresh = [], collections.deque(maxlen=1)
        self._state, self._owner = RUNS, os.getpid()
        self._broken = None                 # the exception that says why no task can be done any more; or None
        self._stillborn = 0
        self._waiting = collections.deque()  # (job, first index, arguments of its tasks)
        self._streams = set()                # the _Stream objects whose iterators have not ended
        self._is_finished = False
        self._wake_lock = threading.RLock()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        _pools.add(self)
        try:
            for _ in range(processes):
                self._workers.append(_Worker(self))
        except BaseException:
            for worker in self._workers:
                worker.kill()
            self._clear()
            raise
        self._thread = threading.Thread(target=self._serve, name="forksight-pool", daemon=True)
        self._thread.start()
        # At exit multiprocessing joins its children. A stopped worker would never end. So the pool kills its workers
        # before multiprocessing joins them.
        self._at_exit = util.Finalize(self, _end_at_exit, args=(weakref.ref(self),), exitpriority=15)

    # Any thread may call the methods from here to __repr__().

    def apply(self, function, args=(), kwds={}):
        return self.apply_async(function, args, kwds).get()

    def apply_async(self, function, args=(), kwds={}, callback=None, error_callback=None):
        if kwds:
            function = functools.update_wrapper(functools.partial(function, **kwds), function, updated=())
        job = _Single(self, function, 1, callback, error_callback)
        return self._submit(job, [tuple(args)], 1)

    def map(self, function, iterable, chunksize=None):
        return self.map_async(function, iterable, chunksize).get()

    def map_async(self, function, iterable, chunksize=None, callback=None, error_callback=None):
        return self._map(function, [(one,) for one in iterable], chunksize, callback, error_callback)

    def starmap(self, function, iterable, chunksize=None):
        return self.starmap_async(function, iterable, chunksize).get()

    def starmap_async(self, function, iterable, chunksize=None, callback=None, error_callback=None):
        return self._map(function, [tuple(one) for one in iterable], chunksize, callback, error_callback)

    def _map(self, function, tasks, chunksize, callback, error_callback):
        if chunksize is None:
            chunksize = -(-len(tasks) // (self._processes * 4)) or 1
        return self._submit(_Job(self, function, len(tasks), callback, error_callback), tasks, chunksize)

    def _submit(self, job, tasks, chunksize):
        self._check_runs()
        if chunksize < 1:
            raise ValueError("chunksize must be 1 or more")
        if not tasks:
            job.call_back()
        for first in range(0, len(tasks), chunksize):
            self._waiting.append((job, first, tasks[first:first + chunksize]))
        self._wake()
        if self._is_finished:
            self._end_rest()
        return AsyncResult(job)

    def imap(self, function, iterable, chunksize=1):
        return self._imap(function, iterable, chunksize, True)

    def imap_unordered(self, function, iterable, chunksize=1):
        return self._imap(function, iterable, chunksize, False)

    def _imap(self, function, iterable, chunksize, is_ordered):
        self._check_runs()
        if chunksize < 1:
            raise ValueError("chunksize must be 1 or more")
        stream = _Stream(self, function, iterable, chunksize, 4 * self._processes * chunksize)
        self._streams.add(stream)
        threading.Thread(target=stream.read, name="forksight-pool-imap", daemon=True).start()
        if self._is_finished:
            self._end_rest()
        return _Iterator(stream, is_ordered)

    def _check_runs(self):
        if self._owner != os.getpid():
            raise ValueError("this pool belongs to the parent process: a forked child must make a pool of its own")
        if self._broken is not None:
            raise self._broken
        if self._state != RUNS:
            raise ValueError("the pool was closed or terminated")

    def close(self):
        """After this call, the pool accepts no more tasks. The workers end after the last task that the pool has accepted."""
        if self._state == RUNS:
            self._state = CLOSES
        self._wake()

    def terminate(self):
        """Kills the workers. Tasks that have not ended fail. Returns when the workers have ended. In a callback of the
        pool, terminate() returns at once."""
        self._state = ENDS
        if self._owner != os.getpid():
            return
        self._wake()
        if threading.current_thread() is not self._thread:  # a callback runs in the pool's thread, which cannot join itself
            self._thread.join()

    def join(self, timeout=None):
        """Waits until all workers have ended. Call it after close() or terminate(). Raises multiprocessing.TimeoutError after
        `timeout` seconds."""
        if self._state == RUNS:
            raise ValueError("call close() or terminate() before join()")
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise multiprocessing.TimeoutError("the pool has not ended: " + self._describe(None))

    def __enter__(self):
        self._check_runs()
        return self

    def __exit__(self, *_):
        self.terminate()

    def worker_pids(self):
        return [worker.pid for worker in list(self._workers)]

    def _describe(self, job):
        """Returns a text for an error, which says which worker has which task. If `job` is not None, the text has only
        the tasks of that call."""
        told = []
        for worker in list(self._workers):
            chunk = worker.chunk
            if chunk is not None and job in (None, chunk[0]):
                told.append(f"process {worker.pid} (state {state_of(worker.pid)}) has task {chunk[1] + worker.returned} of {chunk[0].name}")
        if job is not None and job.total is not None:
            told.insert(0, f"{job.total - len(job.outcomes)} of {job.total} tasks have not ended")
        return "; ".join(told) or "no worker has a task"

    def __repr__(self):
        return f"<forksight.queue.Pool {('runs', 'closes', 'ended')[self._state]} processes={self._processes}>"

    # The pool's thread calls the methods from here on. Other threads may call only _wake() and _end_rest().

    def _wake(self):
        if self._owner != os.getpid():
            return
        with self._wake_lock:
            if self._wake_writer is not None:
                try:
                    os.write(self._wake_writer, b"w")
                except BlockingIOError:
                    pass  # the pipe is full, so it wakes the pool's thread anyway

    def _serve(self):
        try:
            while self._state != ENDS:
                self._feed()
                if self._state == CLOSES and self._is_done() and self._retire():
                    break
                self._poll()
                self._read_all()
                self._bury()
        except BaseException as error:
            self._broken = error
            raise
        finally:
            self._finish()

    def _is_done(self):
        self._streams = {stream for stream in self._streams if stream.total is None}
        return not self._waiting and not self._streams and all(worker.chunk is None for worker in self._workers)

    def _retire(self):
        """Closes the pipes for tasks. Returns True if all workers have ended, or if GRACE is over. If GRACE is over,
        the workers that are left must be killed."""
        now = time.monotonic()
        for worker in self._workers:
            worker.stop_sending()
        self._patience = getattr(self, "_patience", now + GRACE)
        return not self._workers or now >= self._patience

    def _next_chunk(self):
        while True:
            try:
                chunk = self._waiting.popleft()
            except IndexError:
                return None
            if not chunk[0].is_cancelled:
                return chunk

    def _feed(self):
        for worker in list(self._workers):
            if worker.chunk is not None or worker.is_retiring or worker.is_gone:
                continue
            while True:
                chunk = self._next_chunk()
                if chunk is None:
                    return
                job, first, tasks = chunk
                try:
                    data = pickle.dumps((job.function, tasks), pickle.HIGHEST_PROTOCOL)
                except Exception as error:
                    for index in range(first, first + len(tasks)):
                        job.put(index, False, error)
                    continue
                break
            worker.chunk, worker.returned, worker.has_begun = (job, first, tasks), 0, False
            worker.send(data)
            worker.write()

    def _poll(self):
        poll = select.poll()
        poll.register(self._wake_reader, select.POLLIN)
        limit = None
        for worker in self._workers:
            if worker.result_end is not None and not worker.is_mute:
                poll.register(worker.result_end, select.POLLIN)
            if worker.to_send:
                poll.register(worker.task_end, select.POLLOUT)
            if worker.pidfd is not None:
                poll.register(worker.pidfd, select.POLLIN)
            else:
                limit = TICK
        if self._state == CLOSES:
            limit = TICK
        poll.poll(None if limit is None else limit * 1000)
        try:
            os.read(self._wake_reader, 4096)
        except BlockingIOError:
            pass

    def _read_all(self):
        for worker in self._workers:
            if worker.to_send:
                worker.write()
            if worker.is_retiring:
                worker.stop_sending()
            if worker.result_end is not None and worker.read():
                self._take(worker)
            if worker.is_mute and not worker.is_retiring:
                worker.kill()  # it cannot send results any more

    def _take(self, worker):
        for frame in worker.frames():
            try:
                told = pickle.loads(frame)
            except Exception:  # other code in the worker has written into the pipe
                worker.received.clear()
                worker.kill()
                return
            if told[0] == "begin":
                worker.has_begun, self._stillborn = True, 0
                if worker.chunk is None:
                    continue
            elif told[0] == "initializer":
                self._break(self._rebuild(*told[1:]))
            elif worker.chunk is not None:
                job, first, tasks = worker.chunk
                if told[0] == "unreadable":
                    error = self._rebuild(*told[1:])
                    for index in range(first, first + len(tasks)):
                        job.put(index, False, error)
                    worker.returned = len(tasks)
                else:
                    worked, data, text = told[1:]
                    index = first + worker.returned
                    worker.returned += 1
                    if worked:
                        try:
                            value = pickle.loads(data)
                        except Exception as error:
                            worked, value = False, error
                    else:
                        value = self._rebuild(data, text)
                    job.put(index, worked, value)
                if worker.returned == len(tasks):
                    worker.chunk = None
                    worker.tasks_done += 1
                    if worker.tasks_done == self._most_tasks:
                        worker.stop_sending()

    @staticmethod
    def _rebuild(data, text):
        try:
            error = pickle.loads(data)
        except Exception:
            error = RemoteError("an exception that cannot be read here")
        error.__cause__ = RemoteTraceback(text)
        return error

    def _bury(self):
        """Removes the workers that have ended from the pool, settles the tasks that they had, and starts new workers."""
        for worker in list(self._workers):
            if not worker.has_ended():
                continue
            while worker.result_end is not None and worker.read():
                pass
            self._take(worker)
            code = worker.reap()
            self._workers.remove(worker)
            worker.close()
            if worker.chunk is not None:
                self._lose(worker, code)
            elif not worker.is_retiring:
                self._stillborn += worker.tasks_done == 0 and not worker.has_begun
            if self._broken is None and self._stillborn >= MOST_STILLBORN:
                self._break(RuntimeError(f"{self._stillborn} workers in succession ended before they began a task, the last with exit code {code}"))
        while self._state != ENDS and self._broken is None and len(self._workers) < self._processes and not (self._state == CLOSES and self._is_done()):
            try:
                self._workers.append(_Worker(self))
            except Exception as error:  # there may be no more processes or descriptors
                if not self._workers:
                    self._break(error)
                break

    def _lose(self, worker, code):
        job, first, tasks = worker.chunk
        left = tasks[worker.returned:]
        if not worker.has_begun or self._state == ENDS:
            self._stillborn += 1
            self._waiting.appendleft((job, first, tasks))
            return
        number = -code if code is not None and code < 0 else None
        index = first + worker.returned
        job.put(index, False, WorkerKilled(worker.pid, number, code if number is None else None, index, job.name))
        if left[1:]:
            self._waiting.appendleft((job, index + 1, left[1:]))

    def _break(self, error):
        """Ends the pool with this error, because the pool cannot do any further task."""
        self._broken = self._broken or error
        self._state = ENDS

    def _finish(self):
        self._state = ENDS
        for worker in self._workers:
            worker.kill()
        for worker in list(self._workers):
            until = time.monotonic() + GRACE
            while not worker.has_ended() and time.monotonic() < until:
                time.sleep(0.002)
            worker.reap()
        self._waiting.extend(worker.chunk for worker in self._workers if worker.chunk is not None)
        with self._wake_lock:
            self._clear()
        self._is_finished = True
        self._end_rest()

    def _end_rest(self):
        """Ends, with an error, the tasks that the pool has accepted and will not do."""
        error = self._broken or RuntimeError("the pool was terminated before this task ended")
        while True:
            try:
                job = self._waiting.popleft()[0]
            except IndexError:
                break
            job.end(error)
        for stream in list(self._streams):
            stream.end(error)

    def _clear(self):
        for worker in self._workers:
            worker.close()
        self._workers = []
        for name in ("_wake_reader", "_wake_writer"):
            number = getattr(self, name)
            setattr(self, name, None)
            if number is not None:
                os.close(number)

    def _forget(self):
        """Called in a forked child. Only the parent uses the pool. The child closes its copies of the workers' pipes, so that it
        does not keep the pipes open."""
        self._wake_lock = threading.RLock()
        for worker in self._fresh:
            worker.close()
        self._state = ENDS
        self._clear()


def _end_at_exit(pool):
    pool = pool()
    if pool is not None:
        pool.terminate()
