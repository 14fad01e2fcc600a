// Mechanism: none. The program uses MPI and fork() in a correct order.
//            -DFINALISED: the fork comes after MPI_Finalize.
//            -DBEFORE:  the fork comes before MPI_Init, and each process initialises MPI for itself.
//            -DEXEC:    the child execs.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include "../baton.h"
#include "test_mpi.h"

static int world;

static int use_mpi(void) {
  if (MPI_Init(NULL, NULL) != 0 || MPI_Barrier(&world) != 0) return 1;
#ifndef EXEC
  if (MPI_Finalize() != 0) return 2;
#endif
  return 0;
}

int main(void) {
#ifndef BEFORE
  if (use_mpi() != 0) return 1;
#endif
  const pid_t child = fork();
  if (child == 0) {
#if defined(EXEC)
    execl("/bin/true", "true", (char*)NULL);
    _exit(127);
#elif defined(BEFORE)
    _exit(use_mpi());
#else
    // MPI was finalised before the fork. The call is wrong, but the child shares no connection with its parent.
    _exit(MPI_Send("", 1, &world, 0, 0, &world));
#endif
  }
#ifdef BEFORE
  if (use_mpi() != 0) return 2;
#endif
  return end_of(child);
}
