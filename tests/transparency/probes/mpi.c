/* The entry points of MPI and UCX. The probe is linked with the test library of repro/mpi. That library implements some
 * calls. For each other call it only records the arguments.
 * LIBS: forksight_test_mpi
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern uint64_t test_mpi_words[12];

/* Words of 64 bits, each different. */
#define WORD(n) (0x8100000000000081ULL + 0x0101010101010101ULL * (n))

static void say_words(const char* name, unsigned count) {
  char text[200] = "";
  for (unsigned at = 0; at < count && strlen(text) < 180; ++at) {
    char word[24];
    snprintf(word, sizeof word, " %llx", (unsigned long long)test_mpi_words[at]);
    strcat(text, word);
  }
  say("%s got%s", name, text);
}

#define SHOW_WORDS(name, count, types, ...)           \
  do {                                                \
    extern uint64_t name types;                       \
    memset(test_mpi_words, 0, sizeof test_mpi_words); \
    SHOW(name(__VA_ARGS__));                          \
    say_words(#name, count);                          \
  } while (0)

#define W uint64_t
#define SIX WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6)
#define SHOW_6(name) SHOW_WORDS(name, 6, (W, W, W, W, W, W), SIX)
#define SHOW_7(name) SHOW_WORDS(name, 7, (W, W, W, W, W, W, W), SIX, WORD(7))
#define SHOW_8(name) SHOW_WORDS(name, 8, (W, W, W, W, W, W, W, W), SIX, WORD(7), WORD(8))
#define SHOW_12(name)                                                                                            \
  SHOW_WORDS(name, 12, (W, W, W, W, W, W, W, W, W, W, W, W), SIX, WORD(7), WORD(8), WORD(9), WORD(10), WORD(11), \
             WORD(12))

static void call_all(void) {
  SHOW_6(MPI_Send);
  SHOW_7(MPI_Recv);
  SHOW_7(MPI_Isend);
  SHOW_7(MPI_Irecv);
  SHOW_12(MPI_Sendrecv);
  SHOW_6(MPI_Probe);
  SHOW_6(MPI_Iprobe);
  SHOW_6(MPI_Wait);
  SHOW_6(MPI_Waitall);
  SHOW_6(MPI_Test);
  SHOW_6(MPI_Bcast);
  SHOW_7(MPI_Reduce);
  SHOW_6(MPI_Allreduce);
  SHOW_8(MPI_Gather);
  SHOW_8(MPI_Scatter);
  SHOW_7(MPI_Allgather);
  SHOW_7(MPI_Alltoall);
  SHOW_6(MPI_Comm_split);
  SHOW_6(ucp_init_version);
  SHOW_6(ucp_worker_create);
  SHOW_6(ucp_worker_progress);
  SHOW_6(ucp_ep_create);
  SHOW_6(ucp_tag_send_nbx);
  SHOW_6(ucp_tag_recv_nbx);
  SHOW_6(ucp_cleanup);
}

extern int MPI_Barrier(void*);
extern int MPI_Comm_dup(void*, void**);
extern int MPI_Finalize(void);

/* Calls without MPI_Init(). The functions of the test library then return an error, and do not wait. */
PROBE(functions_of_the_test_library) {
  void* copy = NULL;
  SHOW(MPI_Barrier(NULL));
  SHOW(MPI_Comm_dup(&copy, &copy) != 0);
}

PROBE(words) { call_all(); }

/* The parent calls ucp_init_version. So the shim records the child's calls of MPI and UCX. */
PROBE(child_of_an_initialised_process) {
  extern uint64_t ucp_init_version(W, W, W, W, W, W);
  extern uint64_t ucp_cleanup(W, W, W, W, W, W);
  SHOW(ucp_init_version(SIX));
  in_child(call_all);
  SHOW(ucp_cleanup(SIX));
}

static void finalise(void) { SHOW(MPI_Finalize()); }
PROBE(finalise_in_a_child) { in_child(finalise); }

PROBE(dlsym_by_handle) {
  void* const self = dlopen(NULL, RTLD_NOW);
  SHOW(dlsym(self, "MPI_Send") != NULL);
  SHOW(dlsym(RTLD_DEFAULT, "ucp_cleanup") != NULL);
  SHOW(dlsym(RTLD_DEFAULT, "MPI_Nothing") != NULL);
  SHOW(dlerror() != NULL);
  SHOW(dlsym(RTLD_DEFAULT, "M") != NULL);
  SHOW(dlsym(RTLD_DEFAULT, "u") != NULL);
  SHOW(dlsym(RTLD_DEFAULT, "ucp_nothing") != NULL);
}
