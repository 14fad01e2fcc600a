/* A program that ends by SIGSEGV. */
#include <signal.h>
#include <sys/resource.h>

int main(void) {
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  raise(SIGSEGV);
  return 0;
}
