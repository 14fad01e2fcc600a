/* One of several copies of MPI. MPI_Barrier returns the number of the copy, plus 100 in a process other than the one
 * that called MPI_Init. MPI_Send returns 1000 times the number of the copy, plus its arguments count, to and tag. */
#include <stdlib.h>
#include <unistd.h>

static pid_t initialiser;

int MPI_Init(int* argc, char*** argv);
int MPI_Init(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  initialiser = getpid();
  return 0;
}
int PMPI_Initialized(int* flag);
int PMPI_Initialized(int* flag) {
  *flag = initialiser != 0;
  return 0;
}
int PMPI_Finalized(int* flag);
int PMPI_Finalized(int* flag) {
  *flag = 0;
  return 0;
}
int MPI_Barrier(void* communicator);
int MPI_Barrier(void* communicator) {
  (void)communicator;
  return NUMBER + (initialiser == getpid() ? 0 : 100);
}
int MPI_Send(const void* data, int count, void* type, int to, int tag, void* communicator);
int MPI_Send(const void* data, int count, void* type, int to, int tag, void* communicator) {
  (void)data;
  (void)type;
  (void)communicator;
  return NUMBER * 1000 + count + to + tag;
}
