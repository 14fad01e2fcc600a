// A stand-in for the libpthread.so.0 of glibc 2.28. libforksight-ipc.so of the packages is linked against it, but loads
// the libpthread.so.0 of the system. glibc 2.34 moved these functions from libpthread to libc, under a new version
// name. A link against a new glibc therefore refers to the new version names in libc. An old glibc does not have these
// names. References to the old version names in libc would not help: glibc 2.28 and 2.29 look for a function only in
// the library in which the linker has found it. Old and new versions of glibc have these functions under the version
// name of old_libpthread.map.
#define FUNCTION(name) \
  void name(void);     \
  void name(void) {}

FUNCTION(__pthread_key_create)
FUNCTION(pthread_create)
FUNCTION(pthread_detach)
FUNCTION(pthread_getspecific)
FUNCTION(pthread_join)
FUNCTION(pthread_key_create)
FUNCTION(pthread_key_delete)
FUNCTION(pthread_once)
FUNCTION(pthread_setspecific)
FUNCTION(pthread_testcancel)
