"""Runs the example producer with a consumer that is stopped and killed, and with a second consumer.

Checks what `forksight queue` and `forksight why` report about these processes.

Usage: examples_test.py PRODUCER CONSUMER FORKSIGHT"""
import json
import os
import signal
import subprocess
import sys
import time

PRODUCER, CONSUMER, FORKSIGHT = sys.argv[1:4]
FRAMES = 200


def forksight(*arguments):
    run = subprocess.run([FORKSIGHT, "queue", *arguments], capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run
    return run.stdout


def inspect(name):
    return json.loads(forksight("inspect", name, "--format", "json"))[0]


def wait_for(name, is_it):
    """Polls until `is_it` accepts the inspected queue. Only the timeout of the test limits the time."""
    while not is_it(seen := inspect(name)):
        time.sleep(0.01)
    return seen


def main():
    producer = subprocess.Popen([PRODUCER, str(FRAMES)], stdout=subprocess.PIPE, text=True)
    name = producer.stdout.readline().strip()
    started = []
    try:
        # The queue has eight buffers, and no consumer takes a message. So the producer waits, and `inspect` shows this
        # wait.
        seen = wait_for(name, lambda q: q["queued"] == 8 and any(p["waits_for"] == "buffer" for p in q["participants"]))
        assert [p["pid"] for p in seen["participants"] if p["producer"]] == [producer.pid], seen
        by_pid = json.loads(forksight("inspect", str(producer.pid), "--format", "json"))
        assert [q["id"] for q in by_pid] == [seen["id"]]
        assert "waits for a free buffer" in forksight("inspect", name)
        assert "in use: " + name in forksight("gc", "--dry-run")
        watcher = subprocess.Popen([FORKSIGHT, "queue", "gc", "--watch", name], stdout=subprocess.PIPE, text=True)
        started.append(watcher)
        # `why` reports no hang of the producer, and says what the producer waits for. The producer wakes at intervals. If
        # `why` looks at such a moment, it says that the thread runs, and is asked again.
        wait = f"a free buffer of queue {seen['id'][:8]}, 8 queued; no other process receives"
        for _ in range(20):
            said = subprocess.run([FORKSIGHT, "why", str(producer.pid)], capture_output=True, text=True, timeout=30)
            assert said.returncode == 0, said
            if wait in " ".join(said.stdout.split()):
                break
            assert f'thread {producer.pid} "ipc_producer": running' in said.stdout, said.stdout
        else:
            raise AssertionError(said.stdout)

        victim = subprocess.Popen([CONSUMER, name], stdout=subprocess.DEVNULL)
        started.append(victim)
        wait_for(name, lambda q: any(p["pid"] == victim.pid and p["received"] > 3 for p in q["participants"]))
        # A stopped consumer keeps its message, and `why` names the consumer.
        victim.send_signal(signal.SIGSTOP)
        wait_for(name, lambda q: any(p["pid"] == victim.pid and p["state"] == "T" for p in q["participants"]) and
                 q["queued"] + q["held"] == 8 and any(p["waits_for"] == "buffer" for p in q["participants"]))
        said = subprocess.run([FORKSIGHT, "why", str(producer.pid)], capture_output=True, text=True, timeout=30)
        who = f'received by process {victim.pid} "{os.path.basename(CONSUMER)[:15]}" (alive, state T)'
        assert who in " ".join(said.stdout.split()), said.stdout
        victim.kill()
        victim.wait()

        survivor = subprocess.Popen([CONSUMER, name], stdout=subprocess.PIPE, text=True)
        started.append(survivor)
        said = survivor.communicate()[0]
        assert survivor.returncode == 0, said
        assert "no producer is left" in said
        assert producer.wait() == 0
        assert watcher.communicate(timeout=30)[0] == f"removed {name}\n"
        assert watcher.returncode == 0
        assert not os.path.exists("/dev/shm" + name)
    finally:
        for process in [producer, *started]:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        if os.path.exists("/dev/shm" + name):
            os.unlink("/dev/shm" + name)


main()
