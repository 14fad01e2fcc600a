"""A hundred producers and a hundred consumers are killed while their queues are open. One `forksight queue gc` must
remove all these queues, and must leave the queue of a living producer alone.

Usage: gc_test.py PRODUCER CONSUMER FORKSIGHT"""
import ctypes
import fcntl
import os
import subprocess
import sys

PRODUCER, CONSUMER, FORKSIGHT = sys.argv[1:4]
GROUPS, FRAMES = 100, 64


def use_own_memory_folder():
    """Gives this process a /dev/shm of its own, because another test may run gc at the same time. Without the right to do that, the
    test uses the /dev/shm of all processes."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, new_user, private = 0x20000, 0x10000000, 1 << 18 | 1 << 14
    user, group = os.getuid(), os.getgid()
    if libc.unshare(new_mounts) != 0:
        if libc.unshare(new_mounts | new_user) != 0:
            return
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    assert libc.mount(b"none", b"/", None, private, None) == 0, os.strerror(ctypes.get_errno())
    assert libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, None) == 0, os.strerror(ctypes.get_errno())


def start(*command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for_user(process, name):
    """Waits until the process has mapped the queue. Only the timeout of the test limits the time."""
    while True:
        assert process.poll() is None, process.stdout.read()
        with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
            if name in maps.read():
                return
        os.sched_yield()


def wait_until_unused(name):
    """Waits until no process has the queue open. If another process reads the memory of a user while the user dies, the kernel keeps the
    user's lock until the read ends. Only the timeout of the test limits the time."""
    with open("/dev/shm" + name, "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def crash_one():
    """Starts a producer and a consumer and kills both. Returns the name of their queue."""
    producer = start(PRODUCER, "1000000000")
    name = producer.stdout.readline().strip()
    consumer = start(CONSUMER, name)
    try:
        wait_for_user(consumer, name)
    finally:
        for process in (consumer, producer):
            process.kill()
            process.wait()
            process.stdout.close()
    return name


def main():
    use_own_memory_folder()
    alive, live, left = None, "", []
    try:
        left = [crash_one() for _ in range(GROUPS)]
        # This producer waits at most 30 s for a consumer. The calls of crash_one() may take longer, so the producer is started after them.
        alive = start(PRODUCER, str(FRAMES))
        live = alive.stdout.readline().strip()
        assert len(set(left)) == GROUPS and all(os.path.exists("/dev/shm" + name) for name in left)
        for name in left:
            wait_until_unused(name)
        said = subprocess.run([FORKSIGHT, "queue", "gc"], capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said
        for name in left:
            assert f"removed {name}" in said.stdout, (name, said.stdout)
            assert not os.path.exists("/dev/shm" + name), name
        assert f"in use: {live}" in said.stdout and os.path.exists("/dev/shm" + live), said.stdout
        consumer = start(CONSUMER, live)
        said = consumer.communicate()[0]
        assert consumer.returncode == 0 and alive.wait() == 0, said
    finally:
        if alive is not None and alive.poll() is None:
            alive.kill()
            alive.wait()
        for name in filter(None, [live, *left]):
            if os.path.exists("/dev/shm" + name):
                os.unlink("/dev/shm" + name)


main()
