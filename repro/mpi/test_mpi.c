// A test library that takes the place of MPI and UCX, for programs of one process. As in a real library, a thread
// processes messages, and MPI_Barrier waits for that thread. The text of MPI_Get_library_version says that this is the
// test library.
#include "test_mpi.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_initialised, is_finalised;
static pid_t owner;
static pthread_t progress;
static int asked, done, stops;

static void* progress_main(void* unused) {
  pthread_setname_np(pthread_self(), "test-mpi");
  while (!__atomic_load_n(&stops, __ATOMIC_ACQUIRE)) {
    const int now = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
    __atomic_store_n(&done, now, __ATOMIC_RELEASE);
    syscall(SYS_futex, &done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    syscall(SYS_futex, &asked, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
  }
  return unused;
}

int MPI_Init(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  owner = getpid();
  is_initialised = 1;
  return pthread_create(&progress, NULL, progress_main, NULL) == 0 ? 0 : MPI_ERR_OTHER;
}

int PMPI_Initialized(int* flag) {
  *flag = is_initialised;
  return 0;
}

int PMPI_Finalized(int* flag) {
  *flag = is_finalised;
  return 0;
}

int MPI_Get_library_version(char* text, int* bytes) {
  strcpy(text, "forksight test MPI");
  *bytes = (int)strlen(text);
  return 0;
}

static void ask_progress(void) {
  const int number = __atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
  syscall(SYS_futex, &asked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  for (int seen = __atomic_load_n(&done, __ATOMIC_ACQUIRE); seen < number;
       seen = __atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
    syscall(SYS_futex, &done, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
  }
}

int MPI_Barrier(void* communicator) {
  (void)communicator;
  if (!is_initialised || is_finalised) return MPI_ERR_OTHER;
  ask_progress();
  return 0;
}

// Returns an error in a forked child, as a library that notices the fork does.
int MPI_Comm_dup(void* communicator, void** copy) {
  *copy = communicator;
  return getpid() == owner ? 0 : MPI_ERR_OTHER;
}

int MPI_Finalize(void) {
  if (getpid() == owner) {
    __atomic_store_n(&stops, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
    syscall(SYS_futex, &asked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    pthread_join(progress, NULL);
  }
  is_finalised = 1;
  return 0;
}
