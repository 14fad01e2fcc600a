// Mechanism: main seeds the generator, draws a number, and forks two children, which draw numbers. fork() copies the
//            state of the generator, so both children draw the same number.
//            -DDRAND48: the same by drand48() and related functions, in children of a process with a second thread.
// To blame:  the fork of a process with a seeded generator. The children do not seed the generator anew.
// User sees: workers that try the same moves, take the same samples, and choose the same names and ports.
// Fix:       each child seeds the generator with a seed of its own. Or it uses getrandom(), which has no state.
// Repaired:  each child seeds the generator.
//            These variants must be silent, too:
//            single:  only one child draws.
//            between: main draws a number between the two forks, so the children draw different numbers.
//            execs:   the children exec a program that draws no numbers.
//
// EXPECT-BARE: error
// EXPECT: rng-state-duplicated possible/proven corruption culprit="the state of random() and rand()" victims=0
// EXPECT-STACK: stack draw@random
//
// EXPECT-BARE(drand48): error
// EXPECT(drand48): rng-state-duplicated possible/proven corruption culprit="the state of drand48() and related functions" victims=0
// EXPECT-STACK(drand48): stack draw@drand48
// EXPECT-STACK(drand48): fork fork_child@fork
//
// EXPECT-BARE(single): ok
// EXPECT-NONE(single)
// EXPECT-BARE(between): ok
// EXPECT-NONE(between)
// EXPECT-BARE(execs): ok
// EXPECT-NONE(execs)
#include <pthread.h>

#include "../baton.h"

static __attribute__((unused)) void* watch(void* unused) {
  park();
  return unused;
}

static void seed(unsigned value) {
#ifdef DRAND48
  srand48((long)value);
#else
  srand(value);
#endif
}

static long draw(void) {
#ifdef DRAND48
  const double value = drand48();  // MARK: drand48
  return (long)(value * 1e9);
#else
  const long value = random();  // MARK: random
  return value;
#endif
}

static pid_t fork_child(int result) {
  const pid_t child = fork();  // MARK: fork
  if (child != 0) return child;
#if defined(REPAIRED)
  seed((unsigned)getpid());
#elif defined(EXECS)
  execl("/bin/true", "true", NULL);
  _exit(1);
#endif
  const long value = draw();
  if (write(result, &value, sizeof value) != sizeof value) abort();
  _exit(0);
}

int main(void) {
#ifdef DRAND48
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, NULL) != 0) abort();
#endif
  const struct baton results = baton_make();
#ifdef EXECS
  draw();
  return end_of(fork_child(results.end[1])) + end_of(fork_child(results.end[1]));
#endif
  long first = 0;
  long second = 1;
  seed(20);
  draw();
  if (end_of(fork_child(results.end[1])) != 0) abort();
  if (read(results.end[0], &first, sizeof first) != sizeof first) abort();
#ifdef SINGLE
  return 0;
#endif
#ifdef BETWEEN
  draw();
#endif
  if (end_of(fork_child(results.end[1])) != 0) abort();
  if (read(results.end[0], &second, sizeof second) != sizeof second) abort();
  return first == second ? 1 : 0;
}
