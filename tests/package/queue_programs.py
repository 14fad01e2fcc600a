"""Programs that try the queue's library. Each program takes the path of the library, calls the library by ctypes, and
prints nothing if the library works. packaging/old_glibc.cpp replaces some functions of glibc. The programs use what
depends on these functions: exceptions, waits with a deadline, and names."""
START = """
import ctypes, os, resource, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("errno", ctypes.c_int32), ("pid", ctypes.c_uint32), ("text", ctypes.c_char * 500)]
class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64 if name == "buffer_bytes" else ctypes.c_uint32) for name in (
        "slots", "buffers", "buffer_bytes", "named", "thread", "redeliver", "full", "max_redeliver", "max_participants", "spin_us", "atfork_handlers",
        "unlink_at")]
queue, error = ctypes.c_void_p(), Error()
def create(**options):
    return library.forksight_queue_create(ctypes.byref(Options(slots=2, buffers=1, buffer_bytes=64, **options)), ctypes.byref(queue), ctypes.byref(error))
def send():
    return library.forksight_queue_send_copy(queue, b"x", ctypes.c_uint64(1), ctypes.c_int64(0), ctypes.byref(error))
"""
# std::thread throws if there is no memory for a stack. The library can report this exception only if unwinding finds
# the library's tables.
THROWN = START + """
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (4 << 20),) * 2)
code = create(thread=1) or send()
assert code == 18, (code, error.text)
assert b"esource temporarily unavailable" in error.text, error.text
"""
# The queue has only one buffer, so its thread cannot send the second message. Therefore flush waits on a condition
# variable with a deadline.
WAITED = START + """
assert create(thread=1) == 0
assert send() == send() == 0
for milliseconds in (300, 1500):
    began = time.monotonic()
    assert library.forksight_queue_flush(queue, ctypes.c_int64(milliseconds), None, ctypes.byref(error)) == 1, error.text
    assert milliseconds - 1 <= (time.monotonic() - began) * 1000 < milliseconds + 1000
names = {open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")}
assert len(names) == 2, names
message = ctypes.c_void_p()
waiter = []
thread = threading.Thread(target=lambda: waiter.append(library.forksight_queue_flush(queue, ctypes.c_int64(10000), None, None)))
thread.start()
time.sleep(0.1)
began = time.monotonic()
assert library.forksight_queue_receive(queue, ctypes.c_int64(1000), ctypes.byref(message), None) == 0
library.forksight_message_release(message)
thread.join()
assert waiter == [0] and time.monotonic() - began < 5, waiter
"""
NAMED = START + """
assert create(named=1) == 0, error.text
name = ctypes.create_string_buffer(100)
library.forksight_queue_name(queue, name, ctypes.c_size_t(100))
path = "/dev/shm" + name.value.decode()
assert os.stat(path).st_mode & 0o777 == 0o600
other = ctypes.c_void_p()
assert library.forksight_queue_attach_named(name.value, 0, ctypes.byref(other), ctypes.byref(error)) == 0, error.text
os.unlink(path)
assert library.forksight_queue_attach_named(name.value, 0, ctypes.byref(other), ctypes.byref(error)) == 16, error.text
"""
PROGRAMS = (THROWN, WAITED, NAMED)
