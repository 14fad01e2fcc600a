"""Tests of aget() and aput(). A cancelled call must not lose a message. The threads that wait must not delay the end of the
event loop or of the process."""
import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import unittest

from support import RECOVERY, Case, Child, wait_until

from forksight.queue import Closed, Empty, Full, Queue


def waiting_threads():
    return [thread for thread in threading.enumerate() if thread.name == "forksight-queue-wait"]


class Async(Case):
    def setUp(self):
        super().setUp()
        self.queue = self.sharedClosing(Queue(2))

    def tearDown(self):
        wait_until(lambda: not waiting_threads(), RECOVERY)
        super().tearDown()

    def test_aput_and_aget(self):
        async def main():
            task = asyncio.ensure_future(self.queue.aget())
            await asyncio.sleep(0.02)
            await self.queue.aput("one")
            self.assertEqual(await task, "one")
            await self.queue.aput(2)
            self.assertEqual(await self.queue.aget(), 2)

        asyncio.run(main())

    def test_the_loop_goes_on_during_a_wait(self):
        async def main():
            task, ticks = asyncio.ensure_future(self.queue.aget()), 0
            while ticks < 20:
                await asyncio.sleep(0.005)
                ticks += 1
            self.assertFalse(task.done())
            self.queue.put(1)
            self.assertEqual(await task, 1)

        asyncio.run(main())

    def test_timeouts(self):
        async def main():
            with self.assertRaises(Empty):
                await self.queue.aget(timeout=0.1)
            await self.queue.aput(1)
            await self.queue.aput(2)
            with self.assertRaises(Full):
                await self.queue.aput(3, timeout=0.1)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.queue.aput(3), 0.05)
            self.assertEqual([await self.queue.aget(), await self.queue.aget()], [1, 2])

        asyncio.run(main())

    def test_a_cancelled_aget_loses_nothing(self):
        """The task is cancelled before, while or after the message is delivered to its future. No message is lost."""
        async def main():
            for step in range(60):
                task = asyncio.ensure_future(self.queue.aget())
                await asyncio.sleep(0)
                await asyncio.sleep(0.001)
                self.queue.put(step)
                if step % 3 == 1:
                    await asyncio.sleep(0.0002 * (step % 20))
                elif step % 3 == 2:
                    time.sleep(0.01)  # the thread gets the message, but the event loop cannot run, and does not notice it
                task.cancel()
                try:
                    got = await task
                except asyncio.CancelledError:
                    got = await self.queue.aget(timeout=1)
                self.assertEqual(got, step)

        asyncio.run(main())

    def test_a_message_delivered_just_before_a_cancellation_is_not_lost(self):
        async def main():
            task = asyncio.ensure_future(self.queue.aget())
            await asyncio.sleep(0.02)
            loop, deliver = asyncio.get_running_loop(), asyncio.Event()
            call_soon = loop.call_soon_threadsafe

            def together(callback, *arguments):
                call_soon(callback, *arguments)
                call_soon(task.cancel)
                call_soon(deliver.set)

            loop.call_soon_threadsafe = together
            self.queue.put("together")
            await deliver.wait()
            loop.call_soon_threadsafe = call_soon
            try:
                got = await task
            except asyncio.CancelledError:
                got = await self.queue.aget(timeout=1)
            self.assertEqual(got, "together")

        asyncio.run(main())

    def test_a_message_for_a_closed_loop_goes_to_the_next_call(self):
        loop = asyncio.new_event_loop()
        task = loop.create_task(self.queue.aget())
        loop.run_until_complete(asyncio.sleep(0.05))
        self.assertEqual(len(waiting_threads()), 1)
        task._log_destroy_pending = False
        loop.close()
        self.queue.put("kept")
        wait_until(lambda: not waiting_threads(), RECOVERY)
        self.assertEqual(self.queue.get(timeout=1), "kept")
        del task
        gc.collect()

    def test_close_ends_the_waits(self):
        other = Queue()

        async def main():
            tasks = [asyncio.ensure_future(other.aget()) for _ in range(3)]
            await asyncio.sleep(0.05)
            other.close()
            for task in tasks:
                with self.assertRaises(Closed):
                    await asyncio.wait_for(task, RECOVERY)

        asyncio.run(main())

    def test_many_waits_at_once(self):
        async def main():
            tasks = [asyncio.ensure_future(self.queue.aget()) for _ in range(40)]
            await asyncio.sleep(0.02)
            # The waits do not occupy the threads of the loop's executor.
            self.assertEqual(await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, lambda: 5), RECOVERY), 5)
            for item in range(40):
                await self.queue.aput(item)
            self.assertEqual(sorted(await asyncio.gather(*tasks)), list(range(40)))

        asyncio.run(main())

    def test_the_process_ends_while_a_coroutine_waits(self):
        program = """
import asyncio
from forksight.queue import Queue
async def main():
    asyncio.ensure_future(Queue().aget())
    await asyncio.sleep(0.05)
asyncio.run(main())
loop = asyncio.new_event_loop()
loop.create_task(Queue().aget())._log_destroy_pending = False
loop.run_until_complete(asyncio.sleep(0.05))
"""
        environment = {**os.environ, "PYTHONPATH": os.environ["FORKSIGHT_QUEUE_TEST_PACKAGE"]}
        ended = subprocess.run([sys.executable, "-B", "-c", program], env=environment, timeout=10, check=False, stderr=subprocess.DEVNULL)
        self.assertEqual(ended.returncode, 0)

    def test_a_forked_child_waits_too(self):
        async def wait():
            self.queue.put(await self.queue.aget() + 1)

        async def cancelled():
            task = asyncio.ensure_future(self.queue.aget())
            await asyncio.sleep(0.02)
            task.cancel()

        asyncio.run(cancelled())
        child = Child(lambda: asyncio.run(wait()))
        wait_until(lambda: not waiting_threads(), RECOVERY)  # a waiting thread of this process would take the message
        self.queue.put(1)
        self.assertEqual(child.end(), 0)
        self.assertEqual(self.queue.get(timeout=1), 2)


if __name__ == "__main__":
    unittest.main()
