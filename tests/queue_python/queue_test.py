"""Tests of Queue: put() and get(), their limits, signals, killed processes, and how other processes get the queue."""
import gc
import math
import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import unittest

import support
from support import RECOVERY, Case, Child, OpcodeTrace, Stop, wait_until

from forksight.queue import Closed, Empty, Error, Full, NoConsumer, ProducerDied, Queue, TooLarge

MOST_INSTRUCTIONS = 3000
OBJECTS = [None, 0, "text", b"bytes", 2.5, (1, [2, {3: "four"}]), {"a": {"b"}}, 1 << 200, range(5), ValueError("x")]


def raise_stop(*_):
    raise Stop


def load_for_others(pid, memory):
    return memory if os.getpid() != pid else 1 / 0


class OnlyForOthers:
    """The process `pid` cannot unpickle this object. Every other process can: it gets a memoryview of bytes in the message."""

    def __init__(self, pid):
        self.pid = pid

    def __reduce__(self):
        return load_for_others, (self.pid, pickle.PickleBuffer(bytearray(4096)))


def echo(requests):
    try:
        while True:
            answers, item = requests.get()
            answers.put(item)
    except Closed:
        pass


class Basics(Case):
    def setUp(self):
        super().setUp()
        self.queue = self.sharedClosing(Queue(4))

    def test_objects(self):
        for item in OBJECTS:
            self.queue.put(item)
            got = self.queue.get()
            self.assertEqual((type(got), repr(got)), (type(item), repr(item)))

    def test_order_and_limits(self):
        for item in range(4):
            self.queue.put(item)
        with self.assertRaises(queue.Full):
            self.queue.put(4, False)
        with self.assertRaises(queue.Full):
            self.queue.put_nowait(4)
        self.assertEqual([self.queue.get() for _ in range(4)], [0, 1, 2, 3])
        with self.assertRaises(queue.Empty):
            self.queue.get(False)
        with self.assertRaises(queue.Empty):
            self.queue.get_nowait()

    def test_timeouts(self):
        began = time.monotonic()
        with self.assertRaises(Empty) as told:
            self.queue.get(timeout=0.15)
        self.assertGreaterEqual(time.monotonic() - began, 0.15)
        self.assertRegex(str(told.exception), "no message after 0.[12] s")
        for item in range(4):
            self.queue.put(item)
        began = time.monotonic()
        with self.assertRaises(Full) as told:
            self.queue.put(4, timeout=0.15)
        self.assertGreaterEqual(time.monotonic() - began, 0.15)
        self.assertRegex(str(told.exception), "4 QUEUED")
        with self.assertRaises(Empty):
            Queue().get(timeout=-1)
        self.assertEqual(self.queue.get(timeout=math.inf), 0)
        self.queue.put(4, timeout=math.inf)

    def test_too_large(self):
        small = self.sharedClosing(Queue(2, item_bytes=1000))
        with self.assertRaises(TooLarge) as told:
            small.put(b"x" * 10000)
        self.assertIn("item_bytes=", str(told.exception))
        for size in (0, 1, 999, 1000):
            small.put(b"x" * size)
            self.assertEqual(len(small.get()), size)

    def test_full_modes(self):
        failing = self.sharedClosing(Queue(2, full="fail"))
        failing.put(1)
        failing.put(2)
        began = time.monotonic()
        with self.assertRaises(Full):
            failing.put(3)
        self.assertQuick(began, 1)
        newest = self.sharedClosing(Queue(2, full="drop_oldest"))
        for item in range(5):
            newest.put(item)
        self.assertEqual((newest.get(), newest.get()), (3, 4))

    def test_invalid_values_of_options(self):
        with self.assertRaisesRegex(ValueError, "full='drop': it can be 'block', 'fail', 'drop_oldest'"):
            Queue(full="drop")
        with self.assertRaisesRegex(ValueError, "role='reader'"):
            Queue.attach(self.queue.fileno(), "reader")

    def test_an_item_that_cannot_be_pickled_keeps_no_buffer(self):
        for _ in range(10):
            with self.assertRaises((AttributeError, TypeError, pickle.PicklingError)):
                self.queue.put(lambda: 1)
        for item in range(4):
            self.queue.put(item, False)

    def test_an_item_that_cannot_be_unpickled_keeps_no_buffer_and_is_not_delivered_again(self):
        for _ in range(10):
            self.queue.put(Unreadable(), False)
            try:
                self.queue.get()
            except KeyError:
                pass
            else:
                self.fail("no KeyError")
        gc.collect()
        with self.assertRaises(Empty):
            self.queue.get(False)
        for item in range(4):
            self.queue.put(item, False)

    def test_bytes_without_a_frame(self):
        self.queue.put_bytes(b"raw bytes")
        got = self.queue.get()
        self.assertEqual((type(got), bytes(got)), (memoryview, b"raw bytes"))

    def test_a_view_holds_its_message(self):
        self.queue.put_bytes(b"kept")
        view = self.queue.get()
        part = view[1:3]
        del view
        for item in range(3):
            self.queue.put(item, False)
        with self.assertRaises(Full):
            self.queue.put(3, False)
        self.assertEqual(bytes(part), b"ep")
        del part
        self.queue.put(3, False)

    def test_a_view_outlives_the_queue(self):
        other = Queue(2)
        other.put_bytes(b"kept")
        view = other.get()
        other.close()
        del other
        gc.collect()
        self.assertEqual(bytes(view), b"kept")

    def test_loans(self):
        with self.queue.loan() as loan:
            loan.data[:4] = b"loan"
            loan.send(4)
            with self.assertRaises(ValueError):
                loan.send(4)
        self.assertEqual(bytes(self.queue.get()), b"loan")
        for _ in range(10):
            with self.queue.loan(False):
                pass  # the end of the block gives the loan back
        for _ in range(10):
            self.queue.loan(False)  # a loan is also given back when nothing refers to it any more
        loans = [self.queue.loan(False) for _ in range(4)]
        with self.assertRaises(Full):
            self.queue.loan(False)
        loans[0].give_back()
        loans[0].give_back()
        self.queue.loan(False)

    def test_close(self):
        self.queue.put(1)
        line = self.line()
        waits = self.sharedClosing(Queue())

        def wait():
            try:
                waits.get()
            except Closed:
                line.tell(b"closed")

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: thread.is_alive())
        time.sleep(0.05)
        began = time.monotonic()
        waits.close()
        self.assertEqual(line.hear(), b"closed")
        self.assertQuick(began, RECOVERY)
        thread.join()
        with self.assertRaises(ValueError):
            waits.put(1)
        waits.close()
        with Queue() as other:
            other.put(1)
        with self.assertRaises(Closed):
            other.get()

    def test_shutdown(self):
        self.queue.put(1)
        self.queue.shutdown()
        with self.assertRaises(Closed):
            self.queue.put(2)
        self.assertEqual(self.queue.get(), 1)
        with self.assertRaises(Closed):
            self.queue.get()

    def test_threads(self):
        shared, got, lock = self.sharedClosing(Queue(8)), [], threading.Lock()

        def produce(first):
            for item in range(first, first + 200):
                shared.put(item)

        def consume():
            while True:
                item = shared.get()
                if item is None:
                    return
                with lock:
                    got.append(item)

        producers = [threading.Thread(target=produce, args=(first,)) for first in (0, 200)]
        consumers = [threading.Thread(target=consume) for _ in range(2)]
        for thread in producers + consumers:
            thread.start()
        for thread in producers:
            thread.join()
        for _ in consumers:
            shared.put(None)
        for thread in consumers:
            thread.join()
        self.assertEqual(sorted(got), list(range(400)))

    def test_descriptors_and_memory(self):
        gc.collect()
        before = support.descriptors()
        for _ in range(20):
            made = Queue(2)
            made.put_bytes(b"x")
            view = made.get()
            with self.assertRaises(Empty):
                made.get(timeout=0)
            made.close()
        del view, made
        gc.collect()
        self.assertEqual(support.descriptors(), before)


class Unreadable:
    def __reduce__(self):
        return {}.__getitem__, ("missing",)


class Signals(Case):
    def test_ctrl_c_ends_a_wait(self):
        empty, full = self.sharedClosing(Queue(1)), self.sharedClosing(Queue(1))
        full.put(0)
        for call in (empty.get, lambda: full.put(1), full.loan):

            def work(line):
                signal.signal(signal.SIGINT, signal.default_int_handler)
                try:
                    line.tell()
                    call()
                except KeyboardInterrupt:
                    line.tell(b"interrupted")

            self.assertInterrupted(work)

    def test_a_handler_that_returns_does_not_end_a_wait(self):
        shared, line = self.sharedClosing(Queue()), self.line()

        def work():
            signal.signal(signal.SIGUSR1, lambda *_: line.tell(b"handled"))
            line.tell()
            line.tell(str(shared.get()).encode())

        child = Child(work)
        line.hear()
        for _ in range(3):
            time.sleep(0.01)
            child.kill(signal.SIGUSR1)
            self.assertEqual(line.hear(), b"handled")
        shared.put(5)
        self.assertEqual(line.hear(), b"5")
        self.assertEqual(child.end(), 0)

    def test_a_handler_raises_at_each_instruction_of_get(self):
        """A signal handler raises at each instruction of get(). A message may be lost only at the last instructions, which return
        it to the caller. No message may stay held."""
        shared, lost = self.sharedClosing(Queue(2)), 0
        for at in range(MOST_INSTRUCTIONS):
            shared.put(at, False)
            got = None
            with OpcodeTrace("_queue.py", at, raise_stop) as trace:
                try:
                    got = shared.get(timeout=1)
                except Stop:
                    pass
            if got is None:
                try:
                    self.assertEqual(shared.get(False), at)
                except Empty:
                    lost += 1
            else:
                self.assertEqual(got, at)
            self.assertEqual(len(shared._parked), 0)
            with shared.loan(False), shared.loan(False):
                pass  # both buffers of the queue are free
            if not trace.has_acted:
                break
        self.assertGreater(at, 80)
        self.assertLess(at, MOST_INSTRUCTIONS - 1)
        self.assertLessEqual(lost, 3)

    def test_a_handler_raises_at_each_instruction_of_put(self):
        """A signal handler raises at each instruction of put(). The item must be sent once or not at all. No buffer may stay
        taken."""
        shared = self.sharedClosing(Queue(2))
        sent = 0
        for at in range(MOST_INSTRUCTIONS):
            with OpcodeTrace("_queue.py", at, raise_stop) as trace:
                try:
                    shared.put(at, timeout=1)
                except Stop:
                    pass
            try:
                self.assertEqual(shared.get(False), at)
                sent += 1
            except Empty:
                self.assertTrue(trace.has_acted)
            with self.assertRaises(Empty):
                shared.get(False)
            gc.collect(0)
            with shared.loan(False), shared.loan(False):
                pass
            if not trace.has_acted:
                break
        self.assertGreater(at, 150)
        self.assertLess(at, MOST_INSTRUCTIONS - 1)
        self.assertGreater(sent, 1)


class Kills(Case):
    def test_the_buffers_of_a_killed_receiver_are_freed(self):
        shared, line = self.sharedClosing(Queue(2)), self.line()

        def work():
            views = [shared.get(), shared.get()]
            line.tell()
            signal.pause()
            del views

        child = Child(work)
        shared.put_bytes(b"1")
        shared.put_bytes(b"2")
        line.hear()
        with self.assertRaises(Full) as told:
            shared.put(3, timeout=0.1)
        self.assertIn(f"2 HELD by pid {child.pid}", str(told.exception))
        child.kill()
        child.end()
        began = time.monotonic()
        shared.put(3, timeout=5)
        self.assertQuick(began, RECOVERY)

    def test_an_item_of_a_killed_receiver_is_delivered_again(self):
        shared, line = self.sharedClosing(Queue(2, redeliver=True)), self.line()

        def work():
            view = shared.get()
            line.tell(bytes(view))
            signal.pause()
            del view

        child = Child(work)
        shared.put_bytes(b"again")
        self.assertEqual(line.hear(), b"again")
        child.kill()
        child.end()
        self.assertEqual(bytes(shared.get(timeout=RECOVERY)), b"again")

    def poison(self, shared):
        """Kills two receivers of the only item, one after the other. The queue then parks the item: get() does not return it again."""
        line = self.line()

        def work():
            view = shared.get()
            line.tell()
            signal.pause()
            del view

        for _ in range(2):
            child = Child(work)
            line.hear()
            child.kill()
            child.end()
        with self.assertRaises(Empty):
            shared.get(timeout=0.2)

    def test_an_item_that_killed_its_receivers_is_parked(self):
        shared = self.sharedClosing(Queue(1, redeliver=True, max_redeliver=1))
        with self.assertRaises(Empty) as told:
            shared.get_parked()
        self.assertEqual(str(told.exception), "queue: no message is parked")
        self.assertEqual(shared.requeue_parked(), 0)
        shared.put_bytes(b"poison")
        self.poison(shared)
        # The parked item keeps the only buffer.
        with self.assertRaises(Full) as told:
            shared.put(1, timeout=0.01)
        self.assertIn("1 PARKED", str(told.exception))
        self.assertEqual(shared.requeue_parked(), 1)
        self.assertEqual(bytes(shared.get(timeout=RECOVERY)), b"poison")
        shared.put_bytes(b"again")
        self.poison(shared)
        item = shared.get_parked()
        self.assertEqual(bytes(item), b"again")
        with self.assertRaises(Empty):
            shared.get_parked()
        with self.assertRaises(Full):
            shared.put(1, timeout=0.01)
        del item
        gc.collect()
        shared.put(2, timeout=RECOVERY)
        self.assertEqual(shared.get(timeout=RECOVERY), 2)

    def test_a_parked_item_stays_parked_if_it_cannot_be_unpickled_or_its_process_is_killed(self):
        shared, line = self.sharedClosing(Queue(1, redeliver=True, max_redeliver=1)), self.line()
        shared.put(OnlyForOthers(os.getpid()))
        self.poison(shared)
        for _ in range(2):
            with self.assertRaises(ZeroDivisionError):
                shared.get_parked()
        self.assertEqual(shared.requeue_parked(), 1)
        with self.assertRaises(ZeroDivisionError):
            shared.get(timeout=RECOVERY)
        shared.put_bytes(b"poison")
        self.poison(shared)

        def take():
            view = shared.get_parked()
            line.tell()
            signal.pause()
            del view

        child = Child(take)
        line.hear()
        child.kill()
        child.end()
        self.assertEqual(bytes(shared.get_parked(copy=True)), b"poison")

    def test_the_loan_of_a_killed_process_is_freed(self):
        shared, line = self.sharedClosing(Queue(1)), self.line()

        def work():
            loan = shared.loan()
            line.tell()
            signal.pause()
            del loan

        child = Child(work)
        line.hear()
        with self.assertRaises(Full):
            shared.put(1, timeout=0.05)
        child.kill()
        child.end()
        shared.put(1, timeout=RECOVERY)

    def test_the_end_of_producers(self):
        for end, error in ((os._exit, ProducerDied), (lambda _: None, Closed)):
            shared, line = Queue(2, keep_open=False), self.line()
            consumer = self.sharedClosing(Queue.attach(shared.fileno(), "consumer"))
            shared.close()

            def work():
                producer = Queue.attach(consumer.fileno(), "producer")
                producer.put("last")
                line.tell()
                end(0)
                producer.close()
                del producer
                gc.collect()

            child = Child(work)
            line.hear()
            self.assertEqual(child.end(), 0)
            self.assertEqual(consumer.get(timeout=RECOVERY), "last")
            with self.assertRaises(Closed) as told:
                consumer.get(timeout=5)
            self.assertIs(type(told.exception), error)
            self.assertEqual(told.exception.pid, child.pid if error is ProducerDied else 0)

    def test_the_creator_keeps_the_queue_open(self):
        shared = self.sharedClosing(Queue(1))
        for _ in range(3):
            self.assertEqual(Child(lambda: shared.put("one more")).end(), 0)
            self.assertEqual(shared.get(timeout=1), "one more")
            with self.assertRaises(Empty):
                shared.get(timeout=0.1)
        shared.put(0)
        self.assertEqual(Child(lambda: self.assertEqual(shared.get(), 0)).end(), 0)
        shared.put(1)
        with self.assertRaises(Full):
            shared.put(2, timeout=0.1)

    def test_no_consumer_is_left(self):
        shared, line = Queue(1, keep_open=False), self.line()
        producer = self.sharedClosing(Queue.attach(shared.fileno(), "producer"))
        shared.close()

        def work():
            consumer = Queue.attach(producer.fileno(), "consumer")
            line.tell(str(consumer.get()).encode())

        child = Child(work)
        producer.put(1)
        self.assertEqual(line.hear(), b"1")
        child.end()
        producer.put(2, timeout=RECOVERY)
        with self.assertRaises(NoConsumer):
            producer.put(3)

    def test_connection_wait_accepts_the_reader_and_the_writer_of_a_queue(self):
        shared = self.sharedClosing(Queue(2))
        reader, writer = shared.reader, shared.writer
        self.assertEqual(multiprocessing.connection.wait([reader, writer], timeout=RECOVERY), [writer])
        self.assertEqual(multiprocessing.connection.wait([reader], timeout=0), [])
        child = Child(lambda: (shared.put(1), shared.put(2)))
        for item in (1, 2):
            self.assertEqual(multiprocessing.connection.wait([reader], timeout=RECOVERY), [reader])
            self.assertEqual(shared.get(timeout=RECOVERY), item)
        self.assertEqual(child.end(), 0)
        with self.assertRaises(Empty):
            shared.get(False)
        self.assertEqual(multiprocessing.connection.wait([reader], timeout=0), [])

    def test_expected_producers_come_one_after_the_other(self):
        shared = self.sharedClosing(Queue(2, expected_producers=2))
        for item, error in (("first", Empty), ("second", Closed)):

            def work():
                with Queue.attach(shared.fileno(), "producer") as producer:
                    producer.put(item)

            self.assertEqual(Child(work).end(), 0)
            self.assertEqual(shared.get(timeout=RECOVERY), item)
            with self.assertRaises(error):
                shared.get(False)

    def test_a_killed_producer_is_waited_for_during_the_grace_time(self):
        shared, line = self.sharedClosing(Queue(2, grace=3600)), self.line()

        def work(is_killed):
            producer = Queue.attach(shared.fileno(), "producer")
            line.tell()
            if is_killed:
                signal.pause()
            producer.put("again")

        killed = Child(work, True)
        line.hear()
        killed.kill()
        killed.end()
        with self.assertRaises(Empty):
            shared.get(timeout=0.2)
        self.assertEqual(Child(work, False).end(), 0)
        self.assertEqual(shared.get(timeout=RECOVERY), "again")

    def test_the_grace_time_ends(self):
        shared = self.sharedClosing(Queue(2, grace=0.05))
        self.assertEqual(Child(lambda: Queue.attach(shared.fileno(), "producer").put(1)).end(), 0)
        self.assertEqual(shared.get(timeout=RECOVERY), 1)
        with self.assertRaises(Closed):
            shared.get(timeout=RECOVERY)

    def test_invalid_expected_numbers_and_grace_times(self):
        for wrong in ({"expected_producers": 4097}, {"expected_consumers": -1}, {"grace": -1}):
            with self.assertRaises(ValueError):
                Queue(2, **wrong)

    def test_killed_at_every_fifth_instruction_of_put_and_get(self):
        """A process is killed at every fifth instruction of put() and get(). Both buffers of the queue must become free."""
        shared = self.sharedClosing(Queue(2))

        def work(at):
            with OpcodeTrace("_queue.py", at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                shared.put(at)
                shared.get()

        for at in range(0, MOST_INSTRUCTIONS, 5):
            status = Child(work, at).end()
            loans = [shared.loan(timeout=RECOVERY), shared.loan(timeout=RECOVERY)] if self.drain(shared) else []
            self.assertEqual(len(loans), 2)
            del loans
            if status == 0:
                break
            self.assertEqual(status, -signal.SIGKILL)
        self.assertGreater(at, 200)

    @staticmethod
    def drain(shared):
        try:
            shared.get(False)
        except Empty:
            pass
        return True


class Ways(Case):
    def test_multiprocessing(self):
        for method in ("fork", "spawn", "forkserver"):
            for name in (False, True):
                requests, answers = Queue(name=name), Queue(name=name)
                process = multiprocessing.get_context(method).Process(target=echo, args=(requests,))
                process.start()
                for item in OBJECTS[:6]:
                    requests.put((answers, item))
                    self.assertEqual(answers.get(timeout=10), item)
                requests.shutdown()
                process.join(10)
                self.assertEqual(process.exitcode, 0)
                for made in (requests, answers):
                    self.assertEqual(made.name is not None, name)
                    if name:
                        os.unlink("/dev/shm" + made.name)
                    made.close()

    def test_a_name(self):
        shared = self.sharedClosing(Queue(name=True, unlink_at=2))
        other = self.sharedClosing(Queue.attach(shared.name))
        other.put("by name")
        self.assertEqual(shared.get(timeout=1), "by name")
        self.assertFalse(os.path.exists("/dev/shm" + shared.name))

    def test_a_descriptor(self):
        shared = self.sharedClosing(Queue())
        program = "import sys; from forksight.queue import Queue; Queue.attach(int(sys.argv[1])).put('by descriptor')"
        environment = {**os.environ, "PYTHONPATH": os.environ["FORKSIGHT_QUEUE_TEST_PACKAGE"]}
        subprocess.run([sys.executable, "-B", "-c", program, str(shared.fileno())], pass_fds=[shared.fileno()], env=environment, check=True,
                       timeout=support.LIMIT)
        self.assertEqual(shared.get(timeout=1), "by descriptor")

    def test_fork(self):
        shared = self.sharedClosing(Queue(2))
        shared.put_bytes(b"parent's")
        view = shared.get()

        def work():
            self.assertEqual(bytes(view), b"parent's")
            shared.put("from a child")

        self.assertEqual(Child(work).end(), 0)
        self.assertEqual(shared.get(timeout=1), "from a child")
        # The child had a copy of the view. The end of the child must not have released the parent's message.
        shared.put(1, False)
        with self.assertRaises(Full):
            shared.put(2, False)
        self.assertEqual(bytes(view), b"parent's")

    def test_a_pickled_queue_cannot_be_loaded_after_it_was_closed(self):
        shared = Queue()
        data = pickle.dumps(shared)
        other = pickle.loads(data)
        other.put(1)
        self.assertEqual(shared.get(timeout=1), 1)
        other.close()
        shared.close()
        del shared, other
        gc.collect()
        with self.assertRaises(FileNotFoundError):
            pickle.loads(data)
        # One of these files gets the descriptor number that the queue had. The pickle must not accept that file.
        others = [os.open("/dev/null", os.O_RDWR) for _ in range(10)]
        try:
            with self.assertRaises(OSError) as told:
                pickle.loads(data)
            self.assertIn("is not the queue that was pickled", str(told.exception))
        finally:
            for number in others:
                os.close(number)


class Imports(Case):
    def check(self, text, program="", **environment):
        environment = {**os.environ, "PYTHONPATH": os.environ["FORKSIGHT_QUEUE_TEST_PACKAGE"], **environment}
        ended = subprocess.run([sys.executable, "-B", "-c", program + "\nimport forksight.queue"], env=environment, capture_output=True, text=True,
                               check=False, timeout=support.LIMIT)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr.splitlines()[-1], f"^ImportError: forksight.queue.*{text}")

    def test_no_library(self):
        self.check("set FORKSIGHT_QUEUE_LIBRARY to the path of libforksight-ipc.so", FORKSIGHT_QUEUE_LIBRARY="/nowhere/library.so")

    def test_an_unknown_machine(self):
        self.check("runs on aarch64, .*x86_64", "import platform; platform.machine = lambda: 'vax'")

    def test_an_old_python(self):
        self.check("needs Python 3.8 or later, this is", "import sys; sys.version_info = (3, 7, 16, 'final', 0)")


class ChosenNames(Case):
    NAME = f"queue_test.{os.getpid()}"

    def make(self, **options):
        made = self.sharedClosing(Queue(4, name=self.NAME, **options))
        self.addCleanup(self.remove)
        return made

    def remove(self):
        try:
            os.unlink(f"/dev/shm/forksight-{self.NAME}")
        except FileNotFoundError:
            pass

    def test_opens_or_creates(self):
        one = self.make()
        self.assertEqual(one.name, f"/forksight-{self.NAME}")
        one.put("a")
        one.put("b")
        other = self.make()  # takes no message, although the handle becomes a consumer
        self.assertEqual(os.fstat(one.fileno()).st_ino, os.fstat(other.fileno()).st_ino)
        self.assertEqual([other.get(False), one.get(False)], ["a", "b"])
        self.assertEqual(self.sharedClosing(Queue.attach(one.name)).name, one.name)

    def test_children_meet_by_the_name(self):
        def work():
            Queue(4, name=self.NAME).put(os.getpid())
        queue = self.make()
        children = [Child(work) for _ in range(4)]
        self.assertEqual({queue.get(timeout=60) for _ in children}, {child.pid for child in children})
        self.assertEqual([child.end() for child in children], [0] * 4)

    def test_a_handle_keeps_the_queue_open_after_another_has_closed(self):
        queue = self.make()
        other = self.make()
        other.put(1)
        other.close()
        self.assertEqual(queue.get(False), 1)
        with self.assertRaises(Empty):
            queue.get(False)

    def test_refused(self):
        self.make()
        with self.assertRaisesRegex(Error, "has slots 4, but this call asks for 8: ask for the options"):
            Queue(8, name=self.NAME)
        for name in ("", ".x", "a/b", "ä", "0" * 32):
            with self.assertRaisesRegex(Error, "it can have 1 to 64 letters"):
                Queue(4, name=name)
        with self.assertRaisesRegex(ValueError, "contains a zero"):
            Queue(4, name="a\0b")

    def test_a_pickle_does_not_lead_to_another_queue(self):
        queue = self.make()
        pickled = pickle.dumps(queue)
        self.assertEqual(pickle.loads(pickled).name, queue.name)
        self.remove()
        self.make()
        with self.assertRaisesRegex(Error, "is another queue now"):
            pickle.loads(pickled)


if __name__ == "__main__":
    unittest.main()
