"""The suites by name. Each module has ABOUT, PACKAGES, SOURCES, LEFT_OUT, prepare(cache) and units(cache)."""
from . import cpython, glib, libgomp, libuv, php, posix, programs, sanitizers, stress_ng

SUITES = {"posix": posix, "cpython": cpython, "glib": glib, "libuv": libuv, "libgomp": libgomp, "php": php, "stress-ng": stress_ng,
          "programs": programs, "sanitizers": sanitizers}
