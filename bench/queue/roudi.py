"""Runs RouDi, the daemon that iceoryx needs, while something is measured."""
import contextlib
import shutil
import subprocess
import tempfile

POOLS = [(128, 4096), (65536 + 4096, 32), ((1 << 20) + 4096, 32), ((64 << 20) + 4096, 14)]


@contextlib.contextmanager
def running(sizes=POOLS):
    """Starts the daemon with a memory pool for each (bytes, count) of `sizes`, and ends it afterwards. Yields True if the
    daemon is ready, and False if it is not installed or did not become ready."""
    if shutil.which("iox-roudi") is None:
        yield False
        return
    pools = "".join(f"[[segment.mempool]]\nsize = {size}\ncount = {count}\n" for size, count in sizes)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(f"[general]\nversion = 1\n[[segment]]\n{pools}")
        config.flush()
        with subprocess.Popen(["iox-roudi", "-c", config.name, "-l", "off"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as daemon:
            ready = False
            for line in daemon.stdout:
                if "ready for clients" in line:
                    ready = True
                    break
            try:
                yield ready
            finally:
                # After SIGTERM, the daemon would wait for its clients, but some of them were killed. So it gets SIGKILL.
                daemon.kill()
                daemon.wait()
