"""inside.py PACKAGE: runs in the root folder of a system. Installs a package (deb, tar or wheel), and tries it in several steps.
Writes the result of each step to /mnt/result.json: an empty text if the step succeeded, the reason if the step failed,
or null if the step was not tried with this package.

/mnt contains the packages, the files of the repository that the demo needs, transparency/, and suite/. suite/ contains some cases
of the hazard suite and the compiled probes of tests/transparency."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from queue_programs import PROGRAMS

HERE = Path("/mnt")
COMPILERS = ("cc", "c89", "c99", "gcc", "g++", "c++", "clang", "clang++", "tcc", "as", "ld")
LIMIT_S = 60
# The child either sleeps in libgomp, or spins in OpenBLAS until a lost thread computes its part of the product. The hang of a
# spinning child is not proven.
NUMPY_HANGS = ("proven", "likely")
# Groups of probes that crash before main() even without the shim, because libgomp (the first list) or glibc 2.31 (the second list)
# is not initialised at that time.
CRASH_BEFORE_MAIN = ("openmp",)
CRASH_BEFORE_MAIN_OF_GLIBC_2_31 = ("libc_databases", "libc_text")
COMPUTES = {**os.environ, "OMP_NUM_THREADS": "2"}


class Failed(Exception):
    pass


class NotTried(Exception):
    pass


def output_of(*argv, expect=0, **options):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=LIMIT_S * 5, check=False, **options)
    print("$", *argv, f"-> {done.returncode}")
    print(done.stdout)
    if done.returncode != expect:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise Failed(f"{Path(str(argv[0])).name}: status {done.returncode}, not {expect}: {lines[-1].strip() if lines else 'no output'}")
    return done.stdout


def install(package):
    """Installs the package. Returns the folder whose bin/ contains the command. Fails if the root contains a compiler."""
    found = [name for name in COMPILERS if shutil.which(name)]
    if found:
        raise Failed(f"the root has {' '.join(found)}")
    packages = HERE / "packages"
    if package == "deb":
        output_of("dpkg", "-i", *packages.glob("*.deb"))
        return Path("/usr")
    if package == "tar":
        Path("/opt/forksight").mkdir()
        made = [path for path in packages.glob("*.tar.zst") if "-debug" not in path.name]
        output_of("tar", "-C", "/opt/forksight", "--strip-components=1", "--use-compress-program=zstd", "-xf", *made)
        return Path("/opt/forksight")
    output_of("python3", "-m", "venv", "/opt/venv")
    output_of("/opt/venv/bin/pip", "install", "--no-index", *packages.glob("*.whl"))
    return Path("/opt/venv")


class Hung:
    """A program that hangs. It is killed at the end of the `with` block."""

    def __init__(self, *argv):
        self.program = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        env=COMPUTES, start_new_session=True)

    def __enter__(self):
        return self.program.pid

    def __exit__(self, *_):
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()


def child_of(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        if found := (task / "children").read_text().split():
            return int(found[0])
    raise Failed("the program has no child")


def expect_finding(report, rule, hang=("proven",)):
    found = [(finding["rule"], finding["hang"]) for finding in json.loads(report)["findings"]]
    if not any(name == rule and certainty in hang for name, certainty in found):
        raise Failed(f"found {', '.join(f'{name} ({certainty})' for name, certainty in found) or 'nothing'}, not {rule}")


def explain(forksight, rule, *argv, hang=("proven",)):
    """`why` must report the rule. Tries again for a while, because the program needs a moment before it hangs."""
    with Hung(*argv) as pid:
        last = time.monotonic() + LIMIT_S
        while True:
            try:
                return expect_finding(output_of(forksight, "why", "--format", "json", pid, expect=1), rule, hang)
            except Failed:
                if time.monotonic() > last:
                    raise
                time.sleep(0.5)


def try_version(forksight, _):
    output_of(forksight, "--version")


def try_libraries(_, prefix):
    """The loader must find all functions that the two libraries import. With LD_BIND_NOW, the loader looks for all
    functions at once. Otherwise the loader looks for a function only when the function is called. The queue's library
    must also work."""
    for name in ("libforksight.so", "libforksight-ipc.so"):
        path = next(prefix.rglob(name))
        if printed := output_of("/bin/true", env={**os.environ, "LD_PRELOAD": str(path), "LD_BIND_NOW": "1"}):
            raise Failed(f"the loader says about {name}: {printed.strip()}")
    for program in PROGRAMS:
        output_of("/usr/bin/python3", "-c", program, path, env={**os.environ, "LD_BIND_NOW": "1"})


def try_demo(_, prefix):
    output_of("bash", "repro/demo.sh", prefix, HERE / "suite/bin/lost_openmp_pool", cwd=HERE / "forksight")


def try_why(forksight, _):
    explain(forksight, "orphaned-mutex", HERE / "suite/bin/orphaned_mutex.O2")


def try_why_python(forksight, _):
    explain(forksight, "python-lock-orphaned", "python3", HERE / "lock_job.py")


def try_why_numpy(forksight, _):
    explain(forksight, "lost-openmp-pool", "python3", HERE / "numpy_job.py", hang=NUMPY_HANGS)


def try_run(forksight, _):
    """Without a cure the numpy job hangs. With the default cure it ends."""
    job = ("python3", HERE / "numpy_job.py")
    report = Path("/tmp/report.json")
    output_of(forksight, "run", "--cure", "none", "--on-hang", "kill", "--kill-on", "likely", "--format", "json", "--report", report, "--", *job, expect=137, env=COMPUTES)
    expect_finding(report.read_text(), "lost-openmp-pool", NUMPY_HANGS)
    if "done" not in output_of(forksight, "run", "--", *job, env=COMPUTES).splitlines():
        raise Failed("the cured job did not say that it is done")


def try_core(forksight, _):
    with Hung(HERE / "suite/bin/orphaned_mutex.O2") as pid:
        explain_at = time.monotonic() + LIMIT_S
        while subprocess.run([str(forksight), "why", str(pid)], stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False).returncode != 1:
            if time.monotonic() > explain_at:
                raise Failed("the program does not hang")
        child = child_of(pid)
        output_of("gcore", "-o", "/tmp/hung", child)
        output_of("gcore", "-o", "/tmp/hung", pid)
    report = output_of(forksight, "core", "--format", "json", f"/tmp/hung.{child}", "--parent-core", f"/tmp/hung.{pid}", expect=1)
    expect_finding(report, "orphaned-mutex")


def try_suite(forksight, _):
    """With --strict, a case that this system cannot run counts as failed, too."""
    output_of(forksight, "suite", "run", "--strict", "--cases", HERE / "suite")


def try_probes(_, prefix):
    """Each group of probes must print the same with and without the shim. All packages contain the same shim, so only one package is
    tried."""
    if prefix != Path("/usr"):
        raise NotTried
    programs = sorted((HERE / "suite/probes").iterdir())
    if not programs:
        raise Failed("there are no probes")
    frame = HERE / "transparency"
    wrong = []
    for program in programs:
        source = next((frame / "probes").glob(f"{program.name}.c*"))
        crashes = program.name in CRASH_BEFORE_MAIN or (
            program.name in CRASH_BEFORE_MAIN_OF_GLIBC_2_31 and os.confstr("CS_GNU_LIBC_VERSION") == "glibc 2.31")
        try:
            output_of("/usr/bin/python3", "-B", frame / "transparency.py", "run", program, source, prefix / "lib/libforksight.so",
                      *(["--without", "before-main"] if crashes else []))
        except Failed as failed:
            wrong.append(f"{program.name}: {failed}")
    if wrong:
        raise Failed("; ".join(wrong))


STEPS = {"version": try_version, "libraries": try_libraries, "demo": try_demo, "why": try_why, "why python": try_why_python,
         "why numpy": try_why_numpy, "run numpy": try_run, "core": try_core, "suite": try_suite, "probes": try_probes}


def main(package):
    result = {}
    try:
        prefix = install(package)
        result["install"] = ""
    except Failed as failed:
        result = {"install": str(failed), **{step: "not installed" for step in STEPS}}
    else:
        for step, attempt in STEPS.items():
            print(f"\n== {step}", flush=True)
            try:
                attempt(prefix / "bin/forksight", prefix)
                result[step] = ""
            except NotTried:
                result[step] = None
            except (Failed, subprocess.TimeoutExpired) as failed:
                print(f"FAILED: {failed}", flush=True)
                result[step] = str(failed)
    (HERE / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
