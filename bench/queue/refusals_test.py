"""refusals_test.py BENCH_QUEUE: bench_queue refuses names, options and values that it does not know. If it measured something else
instead, nobody would notice that the figure is wrong."""
import subprocess
import sys

CASES = {
    ("--transport", "bare", "--measure", "round-trip"): "round-trip",
    ("--transport", "tube"): "tube",
    ("--transport", "bare", "--seconds", "0"): "--seconds",
    ("--transport", "bare", "--spin-us", "always"): "always",
    ("--transport", "bare", "--speed", "1"): "--speed",
    (): "--transport",
}


def main():
    for words, named in CASES.items():
        ended = subprocess.run([sys.argv[1], *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               timeout=30, check=False)
        assert ended.returncode == 2, (words, ended)
        assert ended.stdout == "", (words, ended)
        assert named in ended.stderr, (words, ended)


if __name__ == "__main__":
    main()
