#!/usr/bin/python3
"""Checks that the record of a fork does not count threads that have ended as lost.

  check_ended.py ENDED_THREADS SHIM FORKSIGHT SCENE THREADS

THREADS is the number of threads at the fork. It includes the forking thread, and threads that the shim does not know.
"""
import json
import os
import subprocess
import sys
import tempfile


def main():
    program, shim, forksight, scene, threads = sys.argv[1:]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=shim, FORKSIGHT_OUT=folder)
        subprocess.run([program, scene], env=environment, check=True, timeout=60)
        traces = [os.path.join(folder, name) for name in os.listdir(folder)]
        lines = []
        for trace in traces:
            text = subprocess.run([forksight, "trace", "dump", trace, "--format", "jsonl"], check=True, timeout=60,
                                  stdout=subprocess.PIPE, text=True).stdout
            lines += [json.loads(line) for line in text.splitlines()]
    for head in [line["fields"] for line in lines if line["record"] == "header"]:
        if not head["exe"].endswith("ended_threads"):
            problems.append(f"the trace says that the program is \"{head['exe']}\"")
    forks = [line["fields"] for line in lines if line["record"] == "fork"]
    if len(forks) != 1:
        problems.append(f"{len(forks)} forks, expected 1")
    for fork in forks:
        if fork["thread_count"] != 0:
            problems.append(f"{fork['thread_count']} threads were lost, expected none")
        if fork["tasks"] != int(threads):
            problems.append(f"{fork['tasks']} threads at the fork, expected {threads}")
    if [line for line in lines if line["record"] == "gone"]:
        problems.append("the trace says that the atfork handlers ended threads which had ended before the fork")
    for problem in problems:
        print(f"{scene}: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
