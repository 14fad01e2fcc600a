/* environment_confine ENVIRONMENT[=MIB]... [--] COMMAND [ARGUMENT...]
 * environment_confine --list
 *
 * Applies the environments to itself in their order, and then executes the command. Exit status 77: this machine or
 * user cannot apply an environment. 2: the arguments are wrong, or an environment could not be applied. 126: the
 * command cannot be executed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    list_environments();
    return 0;
  }
  int at = 1;
  for (; at < argc && argv[at][0] != '/' && strcmp(argv[at], "--") != 0; ++at) {
    int is_missing = 0;
    const char* const problem = confine(argv[at], &is_missing);
    if (problem == NULL) continue;
    fprintf(stderr, "environment_confine: %s: %s\n", argv[at], problem);
    return is_missing ? 77 : 2;
  }
  if (at < argc && strcmp(argv[at], "--") == 0) ++at;
  if (at <= 1 || at >= argc) {
    fprintf(stderr, "usage: environment_confine ENVIRONMENT[=MIB]... [--] COMMAND [ARGUMENT...]\n");
    return 2;
  }
  execvp(argv[at], argv + at);
  fprintf(stderr, "environment_confine: %s: %s\n", argv[at], strerror(errno));
  return 126;
}
