// This program does not initialise CUDA, so the library must refuse to create a pool. The reason must be that no driver
// is installed, or that the driver is not initialised.
#include <cstdio>

#include "forksight/ipc_cuda/gpu_pool.hpp"

int main() {
  using namespace forksight::ipc_cuda;
  pool_options wanted;
  wanted.bytes = 1;
  const auto made = gpu_pool::create(wanted);
  const bool is_refused = !made && (made.error().code == errc::no_driver || made.error().code == errc::not_initialised);
  std::puts(is_refused ? "refused" : "not refused");
}
