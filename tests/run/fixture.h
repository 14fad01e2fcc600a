/* Declarations that both source files of the fixture use. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct mode {
  const char* name; /* NULL at the end of the table */
  void (*run)(void);
};
extern const struct mode kernel_modes[]; /* modes that wait for objects of the kernel: sockets, locks, shared memory */

extern uint32_t word; /* a futex word on which no thread calls FUTEX_WAKE */

void say_ready(void);
void wait_on(uint32_t* address, int operation, const struct timespec* timeout);
void hang(void);
pid_t fork_hung(void);
