/* What the halves of the fixture share. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct mode {
  const char* name; /* NULL: the end of the table */
  void (*run)(void);
};
extern const struct mode kernel_modes[]; /* that wait for objects of the kernel: sockets, locks, shared memory */

extern uint32_t word; /* that nobody wakes */

void say_ready(void);
void wait_on(uint32_t* address, int operation, const struct timespec* timeout);
void hang(void);
pid_t fork_hung(void);
