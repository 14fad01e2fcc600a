#!/usr/bin/python3
"""Runs the probe without and with a preload library. Exit status and output must be the same.

  check_guest.py SCENE PROBE LIBRARY [COUNTER]

Scenes: plain, allocations, missing, read-only, not-a-folder, full, tiny-file, no-descriptors.
COUNTER: the library malloc_counter. Only the scene "allocations" needs COUNTER. This scene preloads COUNTER in both
runs.
In the scene "plain" the shim must also write a trace.
Exit status: 0 if all is as it must be, 1 if not, 77 if the scene cannot be set up here.
"""
import os
import resource
import subprocess
import sys
import tempfile

ASKED = ("FORKSIGHT_LOCK_ORDER", "FORKSIGHT_PREDICT")


def run(probe, library, folder, preload=(), arguments=(), limit=None):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FORKSIGHT_") or key in ASKED}
    libraries = list(preload) + ([library] if library else [])
    if libraries:
        environment["LD_PRELOAD"] = ":".join(libraries)
    if folder is not None:
        environment["FORKSIGHT_OUT"] = folder
    result = subprocess.run([probe, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL, text=True, timeout=50, preexec_fn=limit)
    return result.returncode, result.stdout, result.stderr


def compare(bare, under):
    for name, one, other in zip(("exit status", "standard output", "standard error"), bare, under):
        if one != other:
            print(f"{name} differs")
            before, after = str(one).splitlines(), str(other).splitlines()
            for line in [f"  - {x}" for x in before if x not in after] + [f"  + {x}" for x in after if x not in before]:
                print(line)
            return 1
    return 0


def in_tiny_tmpfs(scene_arguments):
    """Runs this script again, in a mount namespace where the folder for the traces is a tmpfs of 64 KiB."""
    script = 'mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"'
    with tempfile.TemporaryDirectory() as folder:
        # Root may make a mount namespace. Another user may do so only in a new user namespace.
        for right in ([], ["--user", "--map-root-user"]):
            mounted = ["unshare", *right, "--mount", "sh", "-c", script, "sh", folder]
            probe = subprocess.run([*mounted, "true"], stderr=subprocess.PIPE, text=True)
            if probe.returncode == 0:
                return subprocess.run([*mounted, sys.executable, __file__, f"tmpfs:{folder}", *scene_arguments]).returncode
        print(f"skipped: no mount namespace here: {probe.stderr.strip()}")
        return 77


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    scene, probe, library = sys.argv[1:4]
    if scene == "full":
        return in_tiny_tmpfs(sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        arguments, limit, preload = (), None, ()
        out = folder
        if scene == "missing":
            out = folder + "/does/not/exist"
        elif scene == "read-only":
            out = "/proc/self"
        elif scene == "not-a-folder":
            out = "/dev/full"
        elif scene.startswith("tmpfs:"):
            out = scene[len("tmpfs:"):]
        elif scene == "tiny-file":
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        elif scene == "no-descriptors":
            arguments = ("no-descriptors",)
        elif scene == "allocations":
            preload = (sys.argv[4],)
        elif scene != "plain":
            sys.exit(f"check_guest.py: no scene {scene}")
        bare = run(probe, None, None, preload, arguments, limit)
        if bare[0] != 7:
            print(f"the bare probe ended with {bare[0]}: {bare[2]}")
            return 1
        under = run(probe, library, out, preload, arguments, limit)
        if scene == "plain" and not any(name.endswith(".fstrace") for name in os.listdir(folder)) and "forksight" in os.path.basename(library):
            print("no trace was written: the probe did not run under the shim")
            return 1
        return compare(bare, under)


if __name__ == "__main__":
    sys.exit(main())
