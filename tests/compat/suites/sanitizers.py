"""Repaired cases of the hazard suite, built with the sanitizers of gcc and clang.

With forksight, each program must end as it does with the sanitizer alone.
"""
from pathlib import Path

from frame import Unit
from packages import clean_folder

from .build import build_programs, built_programs

ABOUT = "repaired cases of the hazard suite, built with sanitizers"
PACKAGES = ["gcc", "g++", "clang", "libclang-rt-dev"]
SOURCES = []
LEFT_OUT = {"cases whose library has no sanitizer": "the sanitizer would report OpenMP, BLAS and others"}
REPRO = Path(__file__).resolve().parents[3] / "repro"
CASES = """
locks/orphaned_mutex locks/orphaned_condvar locks/orphaned_mutex_kinds locks/orphaned_rwlock_reader locks/orphaned_rwlock_writer
locks/orphaned_semaphore locks/orphaned_spinlock locks/orphaned_barrier locks/self_held_kinds kernel/pipe_held_open kernel/file_lock_shared
deadlocks/join_cycle deadlocks/lock_cycle deadlocks/rwlock_upgrade atfork/handler_order libc/exit_in_child
""".split()
SANITIZERS = {"gcc": ("address", "thread", "undefined", "leak"), "clang": ("address", "thread", "undefined", "memory")}
# If ASan is a shared library, it refuses to start if another library was loaded before it. `forksight run` switches
# this check off. With LD_PRELOAD alone, ASAN_OPTIONS must do so.
ENVIRONMENT = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
SECONDS = 60


def prepare(cache):
    if (cache / "sanitizers/built.json").exists():
        return
    folder = clean_folder(cache / "sanitizers")
    jobs = []
    for case in CASES:
        source = next((path for path in (REPRO / f"{case}.c", REPRO / f"{case}.cpp") if path.exists()), None)
        if source is None:
            continue
        for compiler, sanitizers in SANITIZERS.items():
            for sanitizer in sanitizers:
                program = folder / f"{source.stem}.{compiler}.{sanitizer}"
                command = {"gcc": {".c": "gcc", ".cpp": "g++"}, "clang": {".c": "clang", ".cpp": "clang++"}}[compiler][source.suffix]
                jobs.append((program, [command, "-w", "-O1", "-g", "-pthread", "-D_GNU_SOURCE", "-DREPAIRED", f"-I{REPRO}", f"-fsanitize={sanitizer}",
                                       *(["-std=c++20"] if source.suffix == ".cpp" else []), str(source), "-o", str(program), "-ldl"]))
    build_programs(jobs, folder / "built.json")


def units(cache):
    for path in map(Path, built_programs(cache / "sanitizers/built.json")):
        yield Unit(path.name, [str(path)], environment=ENVIRONMENT, seconds=SECONDS)
