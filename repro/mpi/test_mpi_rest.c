// This file defines the entry points that the shim watches and that test_mpi.c does not define. These functions only
// store the words of their arguments, so that a test sees that each argument arrived.
#include <stdint.h>

typedef uint64_t Word;

extern Word test_mpi_words[12];
Word test_mpi_words[12];

#define WORDS_6 Word a, Word b, Word c, Word d, Word e, Word f
#define WORDS_7 WORDS_6, Word g
#define WORDS_8 WORDS_7, Word h
#define WORDS_12 WORDS_8, Word i, Word j, Word k, Word l
#define LIST_6 a, b, c, d, e, f
#define LIST_7 LIST_6, g
#define LIST_8 LIST_7, h
#define LIST_12 LIST_8, i, j, k, l

// Weak, so that the definitions in test_mpi.c take precedence.
#define FORKSIGHT_MPI_HOOK(name, words)                                     \
  Word name(WORDS_##words);                                                 \
  __attribute__((weak)) Word name(WORDS_##words) {                          \
    const Word given[] = {LIST_##words};                                    \
    for (unsigned at = 0; at < words; ++at) test_mpi_words[at] = given[at]; \
    return 0;                                                               \
  }
#include "../../preload/mpi/mpi_hooks.def"
