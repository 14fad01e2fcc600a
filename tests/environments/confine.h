/* Environments that restrict a program: its system calls, memory or rights. */
#ifndef FORKSIGHT_TESTS_CONFINE_H
#define FORKSIGHT_TESTS_CONFINE_H

/* Applies an environment ("NAME" or "NAME=MIB") to the calling process, for good. Returns NULL, or the reason why the
 * environment could not be applied. Sets `*is_missing` if this machine or user cannot apply the environment. */
const char* confine(const char* environment, int* is_missing);

/* Prints one line for each environment: its name, and what it does. */
void list_environments(void);

#endif
