"""Builds many small C programs in parallel."""
import concurrent.futures
import json
import subprocess

JOBS = 2


def build_one(job):
    program, command = job
    done = subprocess.run(["nice", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    return str(program) if done.returncode == 0 else None


def build_programs(jobs, index):
    """Runs each command of [(program, command)]. Writes the names of the programs that were built into the file `index`."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        built = [program for program in pool.map(build_one, jobs) if program]
    index.write_text(json.dumps(sorted(built)))


def built_programs(index):
    return json.loads(index.read_text())
