/* A preload library that breaks the rules which the audits check. It always exports a function that is in no list,
 * imports a function of another library than libc, and uses dynamic TLS. The environment variable BAD_GUEST chooses one
 * more fault: an allocation in a hook, a changed errno, or a descriptor that stays open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__thread int bad_counter; /* the general dynamic model, which imports __tls_get_addr */
double bad_export(double value) { return cos(value) + bad_counter; }

pid_t fork(void) {
  pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
  const char* rule = getenv("BAD_GUEST"); /* which rule to break */
  if (rule != NULL && strcmp(rule, "allocation") == 0) {
    void* volatile memory = malloc(16); /* volatile, so that the compiler does not drop malloc and free */
    free(memory);
  }
  if (rule != NULL && strcmp(rule, "descriptor") == 0 && open("/dev/null", O_RDONLY) < 0) abort();
  const pid_t child = next();
  if (rule != NULL && strcmp(rule, "errno") == 0) errno = ENOENT;
  return child;
}
