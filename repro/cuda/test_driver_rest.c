// This file defines the entry points that the shim watches and that test_driver.c does not define. These functions only
// store the words of their arguments, so that a test sees that each argument arrived. They return 0, or 3 (not
// initialised).
#include <stdint.h>

typedef uint64_t Word;

int test_driver_is_usable(void);
extern Word test_driver_words[14];
Word test_driver_words[14];

#define WORDS_6 Word a, Word b, Word c, Word d, Word e, Word f
#define WORDS_10 WORDS_6, Word g, Word h, Word i, Word j
#define WORDS_11 WORDS_10, Word k
#define WORDS_14 WORDS_11, Word l, Word m, Word n
#define LIST_6 a, b, c, d, e, f
#define LIST_10 LIST_6, g, h, i, j
#define LIST_11 LIST_10, k
#define LIST_14 LIST_11, l, m, n

// Weak, so that the definitions in test_driver.c take precedence.
#define FORKSIGHT_CUDA_HOOK(name, words)                                       \
  int name(WORDS_##words);                                                     \
  __attribute__((weak)) int name(WORDS_##words) {                              \
    const Word given[] = {LIST_##words};                                       \
    for (unsigned at = 0; at < words; ++at) test_driver_words[at] = given[at]; \
    return test_driver_is_usable() ? 0 : 3;                                    \
  }
#include "../../preload/cuda/cuda_hooks.def"
