/* defect KIND: a program with one defect. KIND is the sanitizer that reports it: address, leak, memory, thread or
 * undefined. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int shared;
static pthread_barrier_t both;

static void* race(void* unused) {
  pthread_barrier_wait(&both);
  ++shared;
  return unused;
}

__attribute__((noinline)) static void leak(void) {
  char* volatile lost = malloc(77);
  strcpy(lost, "lost");
  lost = NULL;
}

int main(int argc, char** argv) {
  const char* const defect = argc > 1 ? argv[1] : "";
  printf("before\n");
  fflush(stdout);
  if (strcmp(defect, "address") == 0) {
    char* volatile block = malloc(10);
    free(block);
    return block[3];
  }
  if (strcmp(defect, "memory") == 0) {
    int* volatile block = malloc(sizeof(int) * 10);
    if (block[argc] > 3) printf("more\n");
  } else if (strcmp(defect, "thread") == 0) {
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, race, NULL);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(defect, "undefined") == 0) {
    volatile int big = 0x7fffffff;
    big += argc;
    printf("%d\n", big);
  } else if (strcmp(defect, "leak") == 0) {
    leak();
  }
  printf("after\n");
  return 0;
}
