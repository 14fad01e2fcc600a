"""CPython's own tests. A file is a unit, and each of its test methods is a test."""
from pathlib import Path

from frame import Unit

from . import marked

ABOUT = "CPython's own tests"
PACKAGES = ["python3", "libpython3.11-testsuite"]
SOURCES = []
LEFT_OUT = {"test_socket: VSOCK": "a virtual machine's socket has no other end here, so the test waits for ever, without forksight, too",
            "tests of what regrtest calls resources": "they need the network, much memory or much time"}
LONG_S = 400
QUICK = """
test_fork1 test_wait3 test_wait4 test_os test_posix test_signal test_thread test_threading_local test_threadedtempfile
test_threadsignals test_queue test_io test_socket test_socketserver test_select test_selectors test_poll test_epoll test_pty
test_popen test_fcntl test_mmap test_tempfile test_faulthandler test_logging test_pathlib test_sys test_syslog test_sched
test_weakref test_contextvars test_context test_gc test_ioctl test_resource test_largefile test_fileio test_memoryio
test_random test_uuid test_sqlite3 test_ctypes test_asyncgen test_coroutines test_shutil test_glob test_code test_cmd_line
test_interpreters test__xxsubinterpreters test_pipes test_eintr test_bytes test_zlib test_bz2 test_lzma test_hashlib
test_locale test_time test_timeout test_mailbox test_enumerate test_functools test_readline test_atexit test_audit test_runpy
""".split()
SLOW = """
test_threading test_subprocess test_concurrent_futures test_multiprocessing_fork test_multiprocessing_forkserver
test_multiprocessing_main_handling
""".split()
ASYNCIO = "test_asyncio"


def prepare(_cache):
    pass


def unit(module, seconds):
    runner = Path(__file__).with_name("cpython_runner.py")
    return Unit(module.removeprefix("test."), ["/usr/bin/python3", str(runner), module], seconds=seconds, parse=marked.parse)


def units(_cache):
    folder = Path("/usr/lib/python3.11/test")
    for name in QUICK:
        if (folder / f"{name}.py").exists() or (folder / name).is_dir():
            yield unit(f"test.{name}", LONG_S)
    for path in sorted((folder / ASYNCIO).glob("test_*.py")):
        if "windows" not in path.name:
            yield unit(f"test.{ASYNCIO}.{path.stem}", LONG_S)
    for name in SLOW:
        yield unit(f"test.{name}", LONG_S)
