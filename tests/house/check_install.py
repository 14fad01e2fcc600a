"""Installs into a scratch prefix, runs the installed command and shim, and builds and runs a project that uses the package."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


MOST_BYTES = 8 << 20


def run(argv, may_fail=False, **options):
    """Runs a command, and returns its output. If the command fails, this program ends, unless may_fail is true."""
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, timeout=100, **options)
    print("$", *argv)
    print(done.stdout, end="")
    if done.returncode != 0 and not may_fail:
        sys.exit(f"exit status {done.returncode}")
    return done.stdout


def check_pages(prefix, verbs):
    """Checks that the manual page of each verb and the completions are installed where man and the shells look for them."""
    pages = ["man/man1/forksight.1", *(f"man/man1/forksight-{verb}.1" for verb in verbs), "man/man1/forksight-suite-run.1"]
    completions = ["bash-completion/completions/forksight", "zsh/site-functions/_forksight", "fish/vendor_completions.d/forksight.fish"]
    for name in pages + completions:
        if not (prefix / "share" / name).is_file() or not (prefix / "share" / name).stat().st_size:
            sys.exit(f"share/{name} was not installed")
    if len(verbs) < 8:
        sys.exit(f"--help names {len(verbs)} verbs")


def check(arguments, scratch):
    prefix = scratch / "prefix"
    run([arguments.cmake, "--install", arguments.build, "--prefix", prefix])

    forksight = prefix / arguments.bindir / "forksight"
    if arguments.version not in run([forksight, "--version"]).split():
        sys.exit(f"forksight --version does not say {arguments.version}")
    if forksight.stat().st_size > MOST_BYTES:
        sys.exit(f"the installed command has {forksight.stat().st_size} bytes, more than {MOST_BYTES}")
    if "forksight.debug" not in run(["readelf", "--string-dump=.gnu_debuglink", forksight]):
        sys.exit("the installed command does not name the file with its debug information")
    if ".debug_info" not in run(["readelf", "--section-headers", "--wide", forksight.parent / ".debug/forksight.debug"]):
        sys.exit("there is no debug information beside the installed command")
    check_pages(prefix, re.findall(r"^  ([a-z]+)\b", run([forksight, "--help"]).partition("\nSubcommands:\n")[2], re.MULTILINE))
    # These commands get a new environment. An LD_LIBRARY_PATH with the build folder would hide that no shim was installed.
    environment = {"PATH": os.environ["PATH"], "HOME": str(scratch)}
    run([forksight, "run", "--", "true"], cwd=scratch, env=environment)
    show_shim = "grep -o '/.*libforksight[^ ]*' /proc/self/maps | sort -u"
    seen = run([forksight, "run", "--", "sh", "-c", show_shim], cwd=scratch, env=environment)
    if not any(line.startswith(str(prefix)) for line in seen.splitlines()):
        sys.exit(f"the installed shim is not loaded: {seen!r}")

    build = scratch / "build"
    run([arguments.cmake, "-G", arguments.generator, "-S", arguments.consumer, "-B", build,
         f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={arguments.cxx}"])
    run([arguments.cmake, "--build", build])
    expected = f"forksight {arguments.version}, trace version 1\n"
    printed = run([build / "consumer"])
    if printed != expected:
        sys.exit(f"the consumer printed {printed!r}, not {expected!r}")
    for program in ("queue-cpp", "queue-c"):
        if (printed := run([build / program])) != "installed\n":
            sys.exit(f"{program} printed {printed!r}")
    if (printed := run([build / "gpu"])) != "refused\n":
        sys.exit(f"without CUDA initialised, a pool of GPU memory was {printed!r}, not refused")
    tests = run([Path(arguments.cmake).with_name("ctest"), "--test-dir", build], may_fail=True)
    for scene, verdict in (("main", "Passed"), ("grandchild", "***Failed"), ("exec", "Passed")):
        if not any(f"fork-test.fork.{scene} " in line and verdict in line for line in tests.splitlines()):
            sys.exit(f"the fork test's scene {scene} was not {verdict}")
    for way, under in (("no-pie", "heard"), ("pie", "heard"), ("static", "not heard")):
        program = build / f"annotated-{way}"
        alone, watched = run([program]).strip(), run([forksight, "run", "-q", "--", program], cwd=scratch, env=environment)
        if alone != "not heard" or under not in watched.splitlines():
            sys.exit(f"the annotations of {program} were {alone!r} alone and {watched!r} under the shim, not {under!r}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("cmake", "build", "consumer", "generator", "cxx", "version", "bindir"):
        parser.add_argument("--" + name, required=True)
    with tempfile.TemporaryDirectory(prefix="forksight-install-") as folder:
        check(parser.parse_args(), Path(folder))
