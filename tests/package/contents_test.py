"""contents_test.py PACKAGING SHIM: packaging/check_contents.py must refuse programs and libraries with known faults, and accept
those without a fault."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGING, SHIM = sys.argv[1:]
del sys.argv[1:]
sys.path.insert(0, PACKAGING)
import check_contents  # noqa: E402

# A program that needs neither a library nor a loader.
STATIC = 'void _start(void) { for (;;) __asm__("pause"); }'
# A library that imports one function of glibc 2.34.
LATE = "int __libc_start_main(void); int late(void) { return __libc_start_main(); }"
# A library that imports pthread_create() of glibc 2.2.5, as a program that was linked on an old system does.
OLD = '__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5"); int pthread_create(void); int old(void) { return pthread_create(); }'


class Contents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="forksight-contents-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compile(self, name, source, *options):
        made = self.folder / name
        subprocess.run(["gcc", "-g", "-x", "c", "-", "-o", made, "-Wl,--build-id=sha1", *options], input=source, text=True, check=True, timeout=30)
        return made

    def test_a_good_static_program_is_accepted(self):
        self.assertEqual(check_contents.check_command(self.compile("forksight", STATIC, "-static", "-nostdlib")), [])

    def test_a_program_that_needs_a_library_is_refused(self):
        made = self.compile("forksight", "int main(void) { return 0; }")
        self.assertEqual(check_contents.check_command(made), ["forksight needs a library", "forksight needs a loader"])

    def test_a_large_program_is_refused(self):
        made = self.compile("forksight", STATIC, "-static", "-nostdlib")
        with open(made, "ab") as file:
            file.truncate(check_contents.MOST_BYTES + 1)
        self.assertEqual(check_contents.check_command(made), ["forksight has 8000001 bytes, more than 8000000"])

    def test_an_import_that_is_too_late_is_refused(self):
        made = self.compile("late.so", LATE, "-shared", "-fPIC", "-fno-builtin")
        self.assertEqual(check_contents.find_late_imports(made, "GLIBC", "2.33"),
                         ["late.so imports __libc_start_main of GLIBC_2.34, later than 2.33"])
        self.assertEqual(check_contents.find_late_imports(made, "GLIBC", "2.34"), [])

    def test_the_shim_needs_no_later_libc_than_the_packages_say(self):
        self.assertEqual(check_contents.find_late_imports(Path(SHIM), "GLIBC", check_contents.LIBC), [])
        self.assertNotEqual(check_contents.find_late_imports(Path(SHIM), "GLIBC", "2.2.4"), [])

    def test_an_import_that_an_old_libc_has_in_another_library_is_refused(self):
        flags = ("-shared", "-fPIC", "-fno-builtin")
        made = self.compile("old.so", OLD, *flags)
        self.assertEqual(check_contents.find_late_imports(made, "GLIBC", check_contents.LIBC), [])
        refused = "imports pthread_create from libc.so.6, where glibc 2.28 does not have it"
        self.assertEqual(check_contents.find_moved_imports(made), [f"old.so {refused}"])
        # It is not enough that the library needs libpthread.so.0. Its version table must also say that the function is in that library.
        made = self.compile("both.so", OLD, *flags, "-Wl,--no-as-needed", "-l:libpthread.so.0")
        self.assertEqual(check_contents.find_moved_imports(made), [f"both.so {refused}"])
        script = self.folder / "map"
        script.write_text("GLIBC_2.2.5 { global: pthread_create; };")
        pthread = self.compile("libpthread.so.0", "void pthread_create(void) {}", *flags, "-Wl,-soname,libpthread.so.0", f"-Wl,--version-script={script}")
        made = self.compile("good.so", OLD, *flags, f"-Wl,{pthread}")
        self.assertIn("pthread_create@GLIBC_2.2.5", check_contents.readelf("--dyn-syms", made))
        self.assertEqual(check_contents.find_moved_imports(made), [])

    def test_the_shim_imports_nothing_that_moved_into_libc(self):
        self.assertEqual(check_contents.find_moved_imports(Path(SHIM)), [])

    def test_debug_information_must_be_there_and_belong_to_the_program(self):
        one, other = self.compile("one", STATIC, "-static", "-nostdlib"), self.compile("other", STATIC + "int x;", "-static", "-nostdlib")
        self.assertEqual(check_contents.check_debug(one, one), [])
        self.assertEqual(check_contents.check_debug(one, other), ["one and its debug information do not have the same build id"])
        self.assertEqual(check_contents.check_debug(one, self.folder / "none"), ["there is no debug information of one"])
        subprocess.run(["strip", "--strip-debug", other], check=True, timeout=30)
        self.assertEqual(check_contents.check_debug(other, other), ["there is no debug information of other"])


if __name__ == "__main__":
    unittest.main()
