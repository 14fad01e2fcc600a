/* Two threads allocate blocks of memory of many sizes, and grow them. The first thread allocates an aligned block. A
 * child reads and frees its copies of the blocks, and the first thread frees the blocks. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 2000 };

static unsigned char* blocks[kBlocks];

static size_t size_of(int i) { return (size_t)(i * 37 % 4096 + 1) << (i % 5); }

static void* fill(void* first) {
  for (int i = (int)(intptr_t)first; i < kBlocks; i += 2) {
    blocks[i] = malloc(size_of(i) / 2 + 1);
    blocks[i] = realloc(blocks[i], size_of(i));
    memset(blocks[i], i & 0xff, size_of(i));
  }
  return NULL;
}

static unsigned long check_and_free(void) {
  unsigned long sum = 0;
  for (int i = 0; i < kBlocks; ++i) {
    sum += blocks[i][0] + blocks[i][size_of(i) - 1];
    free(blocks[i]);
  }
  return sum;
}

int main(void) {
  pthread_t threads[2];
  void* aligned = NULL;
  int status = 0;
  for (intptr_t i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, fill, (void*)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  if (posix_memalign(&aligned, 4096, 100) != 0 || (uintptr_t)aligned % 4096 != 0) return 1;
  const pid_t pid = fork();
  if (pid == 0) {
    const unsigned long sum = check_and_free();
    free(aligned);
    _exit((int)(sum % 251));
  }
  if (waitpid(pid, &status, 0) != pid) return 1;
  printf("child %d\n", WEXITSTATUS(status));
  printf("parent %lu\n", check_and_free() % 251);
  free(aligned);
  return 4;
}
