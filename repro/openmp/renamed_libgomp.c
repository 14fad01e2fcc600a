// Mechanism: a plugin that is opened with RTLD_LOCAL brings a libgomp of its own, under another file name and soname,
//            as PyTorch's wheels do. The child loses the pool of that libgomp like any other. A global look-up of
//            symbols does not find that runtime.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops in the plugin's first parallel region. `ldd` of the program shows no OpenMP.
// Fix:       fork before the plugin's first region, or exec in the child.
// Repaired:  the parent forks before it uses the plugin.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp-deadbeef.so.1 victims=1
// EXPECT-STACK: culprit plugin_sum@plugin.c:plugin-region use_plugin@call main@parent
// EXPECT-STACK: stack plugin_sum@plugin.c:plugin-region use_plugin@call main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 2 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 2 threads"
// EXPECT-CURED: --omp=clamp stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 1 threads"
// EXPECT-CURED: stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 2 threads"
// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp-deadbeef.so.1
#include "plugin.h"

__attribute__((noinline)) static int use_plugin(struct plugin plugin, const char* who) {
  int threads = 0;
  const int sum = plugin.sum(&threads);  // MARK: call
  printf("%s: sum %d by %d threads\n", who, sum, threads);
  fflush(stdout);
  return sum == 500500 ? 0 : 1;
}

int main(void) {
  const struct plugin plugin = plugin_open(RENAMED_PLUGIN);
  int failed = 0;
#ifndef REPAIRED
  failed = use_plugin(plugin, "parent");  // MARK: parent
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    failed = use_plugin(plugin, "child");  // MARK: child
    _exit(failed);
  }
#ifdef REPAIRED
  failed = use_plugin(plugin, "parent");
#endif
  return failed != 0 ? failed : end_of(child);
}
