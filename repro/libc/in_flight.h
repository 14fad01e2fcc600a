// Keeps a thread inside of a libc function while the function holds its lock. There are two ways. If the function
// allocates memory while it holds its lock, the thread waits in malloc() or realloc(), which are defined here. If the
// function accesses memory of the caller while it holds its lock, that memory is on a page that may not be accessed
// yet. The thread then waits in the handler of SIGSEGV, which makes the page accessible at the end.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../baton.h"

extern void* __libc_malloc(size_t bytes);
extern void* __libc_realloc(void* block, size_t bytes);

static struct baton hold_is_on;  // the thread passes this baton when it is inside of the libc function
static struct baton hold_ends;   // inside of the function, the thread waits for this baton

// For this thread: which of its next calls of malloc() or realloc() waits. 1: the next call; 0: none.
static _Thread_local int hold_in_malloc, hold_in_realloc;
// For this thread: malloc() counts and replaces only blocks of this size; 0: blocks of any size.
static _Thread_local size_t hold_bytes;
// For this thread: the block that the next malloc() returns. Null: malloc() allocates as usual.
static _Thread_local void* hold_block;

static void hold(void) {
  baton_pass(hold_is_on);
  baton_wait(hold_ends);
}

void* malloc(size_t bytes) {
  if (hold_bytes == 0 || bytes == hold_bytes) {
    void* const block = hold_block;
    hold_block = NULL;
    if (block != NULL) return block;
    if (hold_in_malloc != 0 && --hold_in_malloc == 0) hold();
  }
  return __libc_malloc(bytes);
}

void* realloc(void* block, size_t bytes) {
  if (hold_in_realloc != 0 && --hold_in_realloc == 0) hold();
  return __libc_realloc(block, bytes);
}

enum { kPage = 4096 };
static char* hold_page;  // the page in front of this page is always accessible; null: there is no page

static void on_fault(int number, siginfo_t* info, void* unused) {
  (void)unused;
  if ((char*)info->si_addr < hold_page || (char*)info->si_addr >= hold_page + kPage) {
    signal(number, SIG_DFL);
    return;
  }
  hold();
  if (mprotect(hold_page, kPage, PROT_READ | PROT_WRITE) != 0) abort();
}

static void make_page(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  char* const pages = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) abort();
  hold_page = pages + kPage;
}

// After this call, the first thread that accesses hold_page waits in on_fault().
static void arm_page(void) {
  if (mprotect(hold_page, kPage, PROT_NONE) != 0) abort();
}
