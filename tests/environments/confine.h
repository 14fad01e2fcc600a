/* Environments that take something away from a program: system calls, memory, rights. */
#ifndef FORKSIGHT_TESTS_CONFINE_H
#define FORKSIGHT_TESTS_CONFINE_H

/* Applies an environment to the calling process: "NAME" or "NAME=MIB". It cannot be undone. Returns NULL, or why it
 * failed. Sets `*is_missing` if this machine or user cannot have the environment. */
const char* confine(const char* environment, int* is_missing);

/* Prints the names of the environments and what they do, one a line. */
void list_environments(void);

#endif
