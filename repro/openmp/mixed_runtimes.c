// Mechanism: one plugin was built by Clang and brings LLVM's libomp. Another plugin was built by GCC and brings
//            libgomp. In a forked child libomp makes a new pool, and libgomp does not. So the first plugin works in the
//            child, and the second one hangs.
// To blame:  two OpenMP runtimes in one process, and fork() after a region of libgomp.
// User sees: the child stops in a parallel region, although others ran in the same child.
// Fix:       run both plugins on libomp, which has libgomp's entry points, too. Or use forksight's --omp.
// Repaired:  the child uses the plugin on libomp only.
//
// EXPECT-BARE: hang
// EXPECT: mixed-openmp-runtimes proven hang culprit="libgomp pool of 2 threads" library=libgomp.so.1
// EXPECT-STACK: culprit plugin_sum@plugin.c:plugin-region use_plugin@call main@parent-gcc
// EXPECT-STACK: stack plugin_sum@plugin.c:plugin-region use_plugin@call main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: mixed-openmp-runtimes proven hang culprit="libgomp pool of 2 threads"
#include "plugin.h"

__attribute__((noinline)) static int use_plugin(struct plugin plugin) {
  int threads = 0;
  const int sum = plugin.sum(&threads);  // MARK: call
  return sum == 500500 ? threads : -1;
}

int main(void) {
  const struct plugin by_gcc = plugin_open(SYSTEM_PLUGIN);
  const struct plugin by_clang = plugin_open(LLVM_PLUGIN);
  if (use_plugin(by_clang) != 2) return 1;
  if (use_plugin(by_gcc) != 2) return 1;  // MARK: parent-gcc
  const pid_t child = fork();             // MARK: fork
  if (child == 0) {
    int threads = use_plugin(by_clang);
#ifndef REPAIRED
    threads = use_plugin(by_gcc);  // MARK: child
#endif
    _exit(threads == 2 ? 0 : 1);
  }
  return end_of(child);
}
