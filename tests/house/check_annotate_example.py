"""Checks that the examples of docs/annotate.md and docs/hazards/orphaned-custom-lock.md compile without a warning."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# A class that the examples of docs/annotate.md use, and do not define in full.
CLASS = """#include <atomic>
class SpinLock {
 public:
  void lock();
  void unlock();

 private:
  static void pause() {}
  std::atomic_flag flag_;
};
"""
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-c", "-o", "/dev/null"]


def examples(page, language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    if not found:
        sys.exit(f"{page}: no example in {language}")
    return found


def compiles(command, source, page):
    done = subprocess.run([*command, *FLAGS, source], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{page}: {' '.join(command)}: exit status {done.returncode}\n{done.stdout}", end="")
    return done.returncode == 0


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check_annotate_example.py ROOT CC CXX")
    root, cc, cxx = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    include = f"-I{root}/preload/include"
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for text in examples(root / "docs/annotate.md", "cpp"):
            source = Path(folder, "example.cpp")
            source.write_text(CLASS + text, encoding="utf-8")
            good &= compiles([cxx, "-std=c++11", include], source, "docs/annotate.md")
        for text in examples(root / "docs/hazards/orphaned-custom-lock.md", "c"):
            source = Path(folder, "example.c")
            source.write_text(text, encoding="utf-8")
            good &= compiles([cc, "-std=gnu11", "-Wno-unused-result", include], source, "docs/hazards/orphaned-custom-lock.md")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
