// A library like those in Python's wheels: its parallel loop runs on the OpenMP runtime that the library was linked
// with. Part of the plugin cases.
#include <omp.h>

int plugin_sum(int* threads);
void plugin_pause(void);

int plugin_sum(int* threads) {
  int sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)  // MARK: plugin-region
  {
#pragma omp master
    *threads = omp_get_num_threads();
#pragma omp for
    for (int i = 1; i <= 1000; ++i) sum += i;
  }
  return sum;
}

void plugin_pause(void) { omp_pause_resource_all(omp_pause_hard); }
