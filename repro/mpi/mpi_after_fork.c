// Mechanism: the parent initialises MPI and forks. MPI processes messages in a thread of its own. The child calls MPI,
//            too, and waits for that thread, which exists only in the parent.
//            -DREFUSED: the library notices the fork and refuses the call.
//            -DWORKS:   the call returns, but it used a connection that two processes now share.
//            -DUCX:     the child calls UCX instead of MPI.
// To blame:  a call of MPI in a child of a process that has initialised MPI.
// User sees: a rank that hangs in a collective call, network errors, or wrong data in other ranks.
// Fix:       call MPI in the parent only, or fork before MPI_Init.
// Repaired:  the child computes, and the parent communicates.
//
// EXPECT-BARE: hang
// EXPECT: mpi-after-fork proven hang culprit=MPI library=libmpi.so.40 victims=1
// EXPECT-STACK: stack exchange@barrier main@child
// EXPECT-STACK: fork main@fork
// EXPECT-WHY: lost-wakeup proven/possible hang
// EXPECT-BARE(refused): error
// EXPECT(refused): mpi-after-fork likely error culprit=MPI
// EXPECT-BARE(works): ok
// EXPECT(works): mpi-after-fork possible corruption culprit=MPI
// EXPECT-BARE(ucx): ok
// EXPECT(ucx): mpi-after-fork possible corruption culprit=UCX
// EXPECT-CORE: lost-wakeup possible may-hang library=libmpi.so.40
#include "../baton.h"
#include "test_mpi.h"

static int world;

__attribute__((noinline)) static int exchange(void) {
#if defined(REFUSED)
  void* copy = NULL;
  return MPI_Comm_dup(&world, &copy);
#elif defined(WORKS)
  return MPI_Send("", 1, &world, 0, 0, &world);
#elif defined(UCX)
  void* worker = NULL;
  return ucp_worker_create(&world, NULL, &worker);
#else
  const int result = MPI_Barrier(&world);  // MARK: barrier
  if (result != 0) fprintf(stderr, "MPI_Barrier: %d\n", result);
  return result;
#endif
}

int main(int argc, char** argv) {
#ifdef UCX
  void* context = NULL;
  (void)argc;
  (void)argv;
  if (ucp_init_version(1, 13, NULL, NULL, &context) != 0) abort();
#else
  if (MPI_Init(&argc, &argv) != 0) abort();
#endif
  if (exchange() != 0) abort();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    _exit(0);
#else
    _exit(exchange());  // MARK: child
#endif
  }
  const int status = end_of(child);
#ifdef UCX
  ucp_cleanup(context);
#else
  if (exchange() != 0 || MPI_Finalize() != 0) abort();
#endif
  return status;
}
