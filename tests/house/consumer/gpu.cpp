// Without CUDA a pool is refused. The reason is that there is no driver, or that nobody has initialised the driver.
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
