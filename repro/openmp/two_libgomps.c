// Mechanism: two plugins are opened with RTLD_LOCAL, and each brings another libgomp. The forking thread has a pool in
//            each libgomp. The program pauses one of the pools, and the child uses the other one.
// To blame:  fork() after a parallel region of libgomp in the same thread. The pool of the renamed libgomp is lost.
// User sees: the child stops in a parallel region, although the program paused OpenMP before the fork.
// Fix:       pause each runtime (each has an omp_pause_resource_all of its own), or fork before the first region.
// Repaired:  the child uses the plugin whose runtime was paused.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp-deadbeef.so.1 victims=1
// EXPECT-STACK: culprit plugin_sum@plugin.c:plugin-region use_plugin@call main@parent-renamed
// EXPECT-STACK: stack plugin_sum@plugin.c:plugin-region use_plugin@call main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="child: 2 threads"
// EXPECT-CURED: --omp=rebuild stdout="child: 2 threads"
// EXPECT-CURED: --omp=clamp stdout="child: 1 threads"
// EXPECT-CURED: stdout="child: 2 threads"
// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp-deadbeef.so.1
#include "plugin.h"

__attribute__((noinline)) static int use_plugin(struct plugin plugin) {
  int threads = 0;
  const int sum = plugin.sum(&threads);  // MARK: call
  return sum == 500500 ? threads : -1;
}

int main(void) {
  const struct plugin system = plugin_open(SYSTEM_PLUGIN);
  const struct plugin renamed = plugin_open(RENAMED_PLUGIN);
  if (use_plugin(system) != 2) return 1;
  if (use_plugin(renamed) != 2) return 1;  // MARK: parent-renamed
  system.pause();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    const int threads = use_plugin(system);
#else
    const int threads = use_plugin(renamed);  // MARK: child
#endif
    printf("child: %d threads\n", threads);
    fflush(stdout);
    _exit(threads > 0 ? 0 : 1);
  }
  return end_of(child);
}
