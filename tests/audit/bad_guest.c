/* A preload library that breaks the rules which the audits check: one export too many, a library beside libc, dynamic
 * TLS; and, one at a time, an allocation in a hook, a lost errno, a descriptor left open. Each audit must turn red. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__thread int bad_counter; /* general dynamic: imports __tls_get_addr */
double bad_export(double value) { return cos(value) + bad_counter; }

pid_t fork(void) {
  pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  const char* rule = getenv("BAD_GUEST"); /* which rule to break */
  if (rule != NULL && strcmp(rule, "allocation") == 0) {
    void* volatile memory = malloc(16); /* volatile: the compiler may drop a pair that nobody looks at */
    free(memory);
  }
  if (rule != NULL && strcmp(rule, "descriptor") == 0 && open("/dev/null", O_RDONLY) < 0) abort();
  const pid_t child = next();
  if (rule != NULL && strcmp(rule, "errno") == 0) errno = ENOENT;
  return child;
}
